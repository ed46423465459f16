#include "monoid.cuh"

// What each thread has summed: a partial sum a block, and the block that ends last sums these in order. For a given grid
// the order of additions is fixed. scratch[0]: blocks that are done; scratch[1 + 2 b], scratch[2 + 2 b]: value and
// presence of block b's part.
DEVICE void sum_blocks(Z acc, bool have, Z *out_vals, i64 *out_words, u64 *scratch) {
    __shared__ bool last;
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
