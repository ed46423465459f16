#include "atomics.cuh"
#include "relax.cuh"

// `best` has START everywhere where XLIST says that there is no d.
KERNEL relax_begin(i64 n, const i64 *count, const IDX *slots, const Z *xvals, i64 xstride, const Z *dvals, i64 dstride,
                   const i64 *dwords, i64 flags, Z *best, i64 *bits, IDX *far, Z *queued, Z *limits, Work *progress,
                   i64 room) {
    if (!(flags & XLIST))
        for (i64 r = thread_id(); r < n; r += thread_count()) {
            const bool has = flags & XFULL || bit(dwords, r);
            best[r] = has ? plain(dvals[r * dstride]) : START;
            if (has && is_start(best[r])) mark(bits, r);
        }
    Z lowest = START;
    for (i64 q = thread_id(), stop = whole_warps(count[0]); q < stop; q += thread_count()) {
        const bool on = q < count[0];
        if (on) {
            const IDX v = slots[q];
            const Z value = plain(xvals[q * xstride]);
            if (flags & XLIST) best[v] = value;
            mark(bits, v);
            if (q < room) {
                far[q] = v;
                queued[q] = value;
            }
            lowest = add(lowest, value);
        }
    }
    keep_best(limits + 2, lowest);
    if (thread_id() == 0) {
        progress->far = count[0] < room ? count[0] : room;
        if (count[0] > room) progress->crowded = 1;
    }
}
