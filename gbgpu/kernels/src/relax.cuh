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

// Whether a value is worse than a limit. NaN is worse than any number, and no worse than itself.
DEVICE bool beyond(Z value, Z limit) {
    const Z better = add(value, limit);
    return better != value && (better == better || value == value);
}

DEVICE bool is_start(Z value) { return START != START ? value != value : value == START; }

// One NaN in place of all: as integers they differ.
DEVICE Z plain(Z value) { return is_start(value) ? START : value; }

DEVICE i64 listed(i64 count, i64 room) { return count < room ? count : room; }

// target = add(target, v). Whether that is another value, and which.
template <class T> DEVICE bool improve_cas(T *target, T v, T &made) {
    typedef typename Bits<T>::type word_t;
    word_t old = bits_of(look_at(target));
    while (true) {
        const T now = value_of<T>(old);
        made = add(now, v);
        if (made == now || made != made) return false;
        const word_t seen = atomicCAS((word_t *)target, old, bits_of(made));
        if (seen == old) return true;
        old = seen;
    }
}
#define improve_or improve_cas
#define improve_and improve_cas
#define improve_xor improve_cas
#define improve_xnor improve_cas
#define improve_sum improve_cas
template <class T> DEVICE bool improve_min(T *target, T v, T &made) {
    made = v;
    return v < atomicMin(target, v);
}
template <class T> DEVICE bool improve_max(T *target, T v, T &made) {
    made = v;
    return v > atomicMax(target, v);
}
// START is the NaN above all numbers from 0.0 up, as integers, and below all from -0.0 down, as unsigned ones.
DEVICE bool improve_min(float *target, float v, float &made) {
    if (v != v) return false;
    if (negative(v)) return improve_cas(target, v, made);
    made = v;
    const float old = value_of<float>(atomicMin((int *)target, (int)bits_of(v)));
    return old != old || v < old;
}
DEVICE bool improve_min(double *target, double v, double &made) {
    if (v != v) return false;
    if (negative(v)) return improve_cas(target, v, made);
    made = v;
    const double old = value_of<double>((u64)atomicMin((i64 *)target, (i64)bits_of(v)));
    return old != old || v < old;
}
DEVICE bool improve_max(float *target, float v, float &made) { return improve_cas(target, v, made); }
DEVICE bool improve_max(double *target, double v, double &made) { return improve_cas(target, v, made); }

// The best value that a warp has put aside.
DEVICE void settle(Z *low, Z lowest) {
    for (int o = 16; o; o >>= 1)
        lowest = add(lowest, __shfl_xor_sync(ALL, lowest, o));
    Z made;
    if (!lane_id() && !is_start(lowest)) improve(low, lowest, made);
}

// Vertices of a warp into a list of so many places; returns the place.
DEVICE i64 put(bool on, IDX v, IDX *list, i64 room, Work *progress, i64 *count) {
    const i64 at = append(on, count);
    if (on && at < room) list[at] = v;
    if (on && at >= room) *(volatile i64 *)&progress->crowded = 1;
    return at;
}
