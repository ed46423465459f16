#include "monoid.cuh"

// Sum of all values: a partial sum a block, and the block that ends last sums these in order. For a given n the order
// of additions is fixed. scratch[0]: blocks that are done; scratch[1 + 2 b], scratch[2 + 2 b]: value and presence of
// block b's part.
KERNEL reduce(i64 n, const i64 *count, const T_B *xvals, i64 xstride, const i64 *xwords, i64 flags, Z *out_vals,
              i64 *out_words, u64 *scratch) {
    __shared__ bool last;
    const i64 total = flags & XLIST ? count[0] : n, words = (total + 63) >> 6;
    const bool full = flags & (XLIST | XFULL);
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
        for (int i = 0; i < 4; i++)
            if (w * 64 + i * 32 + lane_id() < total && bits[i / 2] >> (i % 2 * 32 + lane_id()) & 1)
                join(acc, have, from_b(x[i]), true);
    }
    join_block(acc, have);
    if (threadIdx.x == 0) {
        *(Z *)(scratch + 1 + 2 * blockIdx.x) = acc;
        scratch[2 + 2 * blockIdx.x] = have;
        __threadfence();
        last = atomicAdd(scratch, 1ull) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last) return;
    acc = START;
    have = false;
    for (u32 b = threadIdx.x; b < gridDim.x; b += blockDim.x)
        join(acc, have, *(volatile Z *)(scratch + 1 + 2 * b), ((volatile u64 *)scratch)[2 + 2 * b]);
    join_block(acc, have);
    if (threadIdx.x == 0) {
        out_vals[0] = acc;
        out_words[0] = have;
        scratch[0] = 0;
    }
}
