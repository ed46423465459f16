// target = add(target, v) by many threads at once. The generated header picks one form for its monoid and type.

template <int size> struct Word;
template <> struct Word<4> {
    typedef u32 type;
};
template <> struct Word<8> {
    typedef u64 type;
};
template <class T> struct Bits {
    typedef typename Word<sizeof(T)>::type type;
    union {
        T value;
        type word;
    };
};
template <class T> DEVICE typename Bits<T>::type bits_of(T value) {
    Bits<T> b;
    b.value = value;
    return b.word;
}
template <class T> DEVICE T value_of(typename Bits<T>::type word) {
    Bits<T> b;
    b.word = word;
    return b.value;
}
// What was there lately: an atomic operation follows where that matters.
DEVICE u32 lately(const u32 *word) { return __ldca(word); }
DEVICE u64 lately(const u64 *word) { return __ldca((const unsigned long long *)word); }
template <class T> DEVICE T current(T *target) { return value_of<T>(lately((const typename Bits<T>::type *)target)); }

// Values of 8 and 16 bits live in a 32-bit word with others; buffers end with whole words.
DEVICE u32 *word_around(void *target) { return (u32 *)((u64)target & ~3ull); }
DEVICE int shift_in_word(void *target) { return (int)((u64)target & 3) * 8; }

template <class T> DEVICE void combine_small(T *target, T v) {
    u32 *word = word_around(target);
    const int shift = shift_in_word(target);
    const u32 field = sizeof(T) == 1 ? 0xffu : 0xffffu;
    u32 old = lately(word);
    while (true) {
        const T now = (T)(old >> shift & field), wanted = add(now, v);
        if (wanted == now) return;
        const u32 seen = atomicCAS(word, old, (old & ~(field << shift)) | ((u32)wanted & field) << shift);
        if (seen == old) return;
        old = seen;
    }
}

// Any monoid: compare and swap, until the value stays as it is.
template <class T> DEVICE void combine_cas(T *target, T v) {
    if constexpr (sizeof(T) < 4) {
        combine_small(target, v);
    } else {
        typedef typename Bits<T>::type word_t;
        word_t old = bits_of(current(target));
        while (true) {
            const word_t wanted = bits_of<T>(add(value_of<T>(old), v));
            if (wanted == old) return;
            const word_t seen = atomicCAS((word_t *)target, old, wanted);
            if (seen == old) return;
            old = seen;
        }
    }
}

DEVICE void combine_sum(u32 *target, u32 v) { atomicAdd(target, v); }
DEVICE void combine_sum(u64 *target, u64 v) { atomicAdd(target, v); }
DEVICE void combine_sum(int *target, int v) { atomicAdd(target, v); }
DEVICE void combine_sum(i64 *target, i64 v) { atomicAdd((u64 *)target, (u64)v); }
DEVICE void combine_sum(float *target, float v) { atomicAdd(target, v); }
DEVICE void combine_sum(double *target, double v) { atomicAdd(target, v); }

// Integers of 32 and 64 bits. The read first saves the atomics that would change nothing.
template <class T> DEVICE void combine_min(T *target, T v) {
    if (v < current(target)) atomicMin(target, v);
}
template <class T> DEVICE void combine_max(T *target, T v) {
    if (v > current(target)) atomicMax(target, v);
}
template <class T> DEVICE void combine_or(T *target, T v) {
    if (v & ~current(target)) atomicOr((typename Bits<T>::type *)target, (typename Bits<T>::type)v);
}
template <class T> DEVICE void combine_and(T *target, T v) {
    if (~v & current(target)) atomicAnd((typename Bits<T>::type *)target, (typename Bits<T>::type)v);
}
template <class T> DEVICE void combine_xor(T *target, T v) {
    if (v) atomicXor((typename Bits<T>::type *)target, (typename Bits<T>::type)v);
}

// Floats: the order of their bits as integers, signed for values from 0.0 up, unsigned and reversed for those from -0.0
// down. NaN is the start: the first value takes its place by compare and swap. A NaN term is ignored.
template <class T, class Order> DEVICE void combine_extreme(T *target, T v, Order order) {
    if (v != v) return;
    T now = current(target);
    while (now != now) {
        const typename Bits<T>::type old = bits_of(now),
                                     seen = atomicCAS((typename Bits<T>::type *)target, old, bits_of(v));
        if (seen == old) return;
        now = value_of<T>(seen);
    }
    if (bits_of<T>(add(now, v)) != bits_of<T>(now)) order();
}
DEVICE bool negative(float v) { return bits_of(v) >> 31; }
DEVICE bool negative(double v) { return bits_of(v) >> 63; }
DEVICE void combine_min(float *target, float v) {
    combine_extreme(target, v, [=] {
        if (negative(v)) atomicMax((u32 *)target, bits_of(v));
        else atomicMin((int *)target, (int)bits_of(v));
    });
}
DEVICE void combine_min(double *target, double v) {
    combine_extreme(target, v, [=] {
        if (negative(v)) atomicMax((u64 *)target, bits_of(v));
        else atomicMin((i64 *)target, (i64)bits_of(v));
    });
}
DEVICE void combine_max(float *target, float v) {
    combine_extreme(target, v, [=] {
        if (negative(v)) atomicMin((u32 *)target, bits_of(v));
        else atomicMax((int *)target, (int)bits_of(v));
    });
}
DEVICE void combine_max(double *target, double v) {
    combine_extreme(target, v, [=] {
        if (negative(v)) atomicMin((u64 *)target, bits_of(v));
        else atomicMax((i64 *)target, (i64)bits_of(v));
    });
}

// Truth values: every store that happens stores the same value.
DEVICE void combine_or(bool *target, bool v) {
    if (v) *target = true;
}
DEVICE void combine_and(bool *target, bool v) {
    if (!v) *target = false;
}
DEVICE void combine_xor(bool *target, bool v) {
    if (v) atomicXor(word_around(target), 1u << shift_in_word(target));
}
DEVICE void combine_xnor(bool *target, bool v) { combine_xor(target, !v); }
