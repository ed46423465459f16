// Sums of one monoid over lanes and blocks. A sum is a value and whether there was any term; without terms it is START.

DEVICE void join(Z &acc, bool &have, Z other, bool other_have) {
    if (IS_ANY) acc = have ? acc : other;
    else acc = add(acc, other);
    have |= other_have;
}

// Sums of groups of `lanes` neighbouring lanes (a power of two), on all of their lanes. `any` is the first lane's.
DEVICE void join_lanes(Z &acc, bool &have, int lanes) {
    if (IS_ANY) {
        const u32 group = (lanes == 32 ? ALL : (1u << lanes) - 1) << (lane_id() & ~(lanes - 1));
        const u32 votes = __ballot_sync(ALL, have) & group;
        acc = __shfl_sync(ALL, acc, votes ? __ffs(votes) - 1 : lane_id());
        have = votes != 0;
        return;
    }
    for (int o = lanes >> 1; o; o >>= 1) {
        const Z other = __shfl_xor_sync(ALL, acc, o);
        const bool other_have = __shfl_xor_sync(ALL, (int)have, o);
        join(acc, have, other, other_have);
    }
}

// Sum of the block, on thread 0: lanes first, then warps in their order, so that it doesn't vary from run to run.
DEVICE void join_block(Z &acc, bool &have) {
    __shared__ Z values[32];
    __shared__ bool haves[32];
    join_lanes(acc, have, 32);
    if (lane_id() == 0) {
        values[threadIdx.x >> 5] = acc;
        haves[threadIdx.x >> 5] = have;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        const bool mine = threadIdx.x < blockDim.x >> 5;
        acc = mine ? values[threadIdx.x] : START;
        have = mine && haves[threadIdx.x];
        join_lanes(acc, have, 32);
    }
    __syncthreads();
}
