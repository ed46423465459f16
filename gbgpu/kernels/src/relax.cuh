// What relaxation to a fixpoint shares: its numbers, values as they are now, improvements, places in lists.

#define PATIENCE 20000000000ull
#include "resident.cuh"

struct Work { // PROGRESS of interface.py, and what is needed besides
    i64 near, far, windows, extended, edges, improved, ended;
    i64 spilled, kept, taken, side, far_side, crowded;
};

DEVICE i64 look(const i64 *p) { return *(const volatile i64 *)p; }
// As it is now, past the cache next to the threads, which does not see what others write.
template <class T> DEVICE T look_at(const T *p) {
    typedef typename Bits<T>::type word_t;
    return value_of<T>(*(const volatile word_t *)p);
}

DEVICE bool is_start(Z value) { return START != START ? value != value : value == START; }

// One NaN in place of all: as integers they differ.
DEVICE Z plain(Z value) { return is_start(value) ? START : value; }

DEVICE i64 listed(i64 count, i64 room) { return count < room ? count : room; }

// target = add(target, v); returns what it was.
template <class T> DEVICE T replace_cas(T *target, T v) {
    typedef typename Bits<T>::type word_t;
    word_t old = bits_of(look_at(target));
    while (true) {
        const T now = value_of<T>(old), made = add(now, v);
        if (made == now || made != made) return now;
        const word_t seen = atomicCAS((word_t *)target, old, bits_of(made));
        if (seen == old) return now;
        old = seen;
    }
}
template <class T> DEVICE T replace_min(T *target, T v) { return atomicMin(target, v); }
template <class T> DEVICE T replace_max(T *target, T v) { return atomicMax(target, v); }
// START is the NaN above all numbers from 0.0 up, as integers, and below all from -0.0 down, as unsigned ones.
DEVICE float replace_min(float *target, float v) {
    if (!(v >= 0) || negative(v)) return replace_cas(target, v);
    return value_of<float>(atomicMin((int *)target, (int)bits_of(v)));
}
DEVICE double replace_min(double *target, double v) {
    if (!(v >= 0) || negative(v)) return replace_cas(target, v);
    return value_of<double>((u64)atomicMin((i64 *)target, (i64)bits_of(v)));
}
DEVICE float replace_max(float *target, float v) { return replace_cas(target, v); }
DEVICE double replace_max(double *target, double v) { return replace_cas(target, v); }

// Whether a is better than b; NaN is not compared.
DEVICE bool better_cas(Z a, Z b) {
    const Z made = add(b, a);
    return made == made && made != b;
}
DEVICE bool better_min(Z a, Z b) { return a < b; }
DEVICE bool better_max(Z a, Z b) { return a > b; }

// Whether v, which is not START, made a value better; START of floats is NaN.
DEVICE bool improves(Z v, Z old) { return better(v, old) || old != old; }

// The best value that a warp has put aside.
DEVICE void keep_best(Z *low, Z lowest) {
    for (int o = 16; o; o >>= 1)
        lowest = add(lowest, __shfl_xor_sync(ALL, lowest, o));
    if (!lane_id() && !is_start(lowest)) replace(low, lowest);
}
