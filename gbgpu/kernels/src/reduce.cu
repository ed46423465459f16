// Sum of all values: a partial sum a block, and the block that ends last sums these in order. For a given n the order
// of additions is fixed. scratch[0]: blocks that are done; scratch[1 + 2 b], scratch[2 + 2 b]: value and presence of
// block b's part.
const int AHEAD = 4; // loads under way at once

KERNEL reduce(i64 n, const i64 *count, const T_B *xvals, i64 xstride, const i64 *xwords, i64 flags, Z *out_vals,
              i64 *out_words, u64 *scratch) {
    __shared__ bool last;
    const i64 total = flags & XLIST ? count[0] : n;
    Z acc = START;
    bool have = false;
    for (i64 first = thread_id(); first < total && !(have && is_terminal(acc)); first += AHEAD * thread_count()) {
        u32 bits[AHEAD];
        T_B x[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const i64 q = first + i * thread_count();
            if (q < total) bits[i] = bits_at(xwords, q, flags & (XLIST | XFULL)), x[i] = xvals[q * xstride];
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (first + i * thread_count() < total && bits[i] >> lane_id() & 1) join(acc, have, from_b(x[i]), true);
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
