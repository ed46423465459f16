#include "sum.cuh"

KERNEL reduce(i64 n, const i64 *count, const T_B *xvals, i64 xstride, const i64 *xwords, i64 flags, Z *out_vals,
              i64 *out_words, u64 *scratch) {
    const i64 total = flags & XLIST ? count[0] : n, words = (total + 63) >> 6;
    const bool full = flags & (XLIST | XFULL | PAIRED);
    Z acc = START;
    bool have = false;
    // two words of rows a warp: four loads of each thread are under way at once
    for (i64 w = warp_id() * 2; w < words && !(have && is_terminal(acc)); w += warp_count() * 2) {
        u64 bits[2] = {~0ull, ~0ull};
        T_B x[4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (!full && w + i < words) bits[i] = xwords[w + i];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const i64 q = w * 64 + i * 32 + lane_id();
            if (q < total) x[i] = xvals[q * xstride];
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const i64 q = w * 64 + i * 32 + lane_id();
            if (q < total && bits[i / 2] >> (i % 2 * 32 + lane_id()) & 1 && !(flags & PAIRED && !xwords[2 * q]))
                join(acc, have, from_b(x[i]), true);
        }
    }
    sum_blocks(acc, have, out_vals, out_words, scratch);
}
