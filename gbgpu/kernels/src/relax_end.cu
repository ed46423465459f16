#include "atomics.cuh"
#include "relax.cuh"

// out_waiting is zeroed by the caller.
KERNEL relax_end(i64 n, const Z *best, const i64 *bits, const IDX *near, const IDX *far, const Z *queued,
                 const Work *progress, i64 *out_words, i64 *out_waiting, i64 *count, i64 room) {
    i64 found = 0;
    EACH_PAIR(first, n) {
        for (int half = 0; half < 2; half++) {
            const i64 r = first + 32 * half;
            found += store_bits(out_words, r, r < n && (!is_start(best[r]) || bit(bits, r)));
        }
    }
    block_add(count, found);
    for (i64 i = thread_id(); i < listed(progress->near, room); i += thread_count())
        mark(out_waiting, near[progress->side * room + i]);
    for (i64 i = thread_id(); i < listed(progress->far, room); i += thread_count()) {
        const IDX v = far[progress->far_side * room + i];
        if (bits_of(best[v]) == bits_of(queued[progress->far_side * room + i])) mark(out_waiting, v);
    }
}
