// Rows of matrices for kernels that keep the order of entries: a warp a row, or the whole block for a long one.

const i64 LONG_ROW = 2048;
const int WARPS = 8; // of a block of 256 threads

struct Warp {
    static const u32 size = 32;
    DEVICE u32 rank() const { return lane_id(); }
    // top plus the number of lower ranks that are on; top grows by all that are.
    DEVICE i64 place(bool on, i64 &top) const {
        const u32 votes = __ballot_sync(ALL, on);
        const i64 at = top + __popc(votes & lanes_below());
        top += __popc(votes);
        return at;
    }
};

struct Block {
    static const u32 size = 32 * WARPS;
    DEVICE u32 rank() const { return threadIdx.x; }
    DEVICE i64 place(bool on, i64 &top) const {
        __shared__ u32 sums[WARPS];
        const u32 votes = __ballot_sync(ALL, on);
        if (lane_id() == 0) sums[threadIdx.x >> 5] = __popc(votes);
        __syncthreads();
        i64 at = top + __popc(votes & lanes_below());
        for (int w = 0; w < WARPS; w++) {
            if (w < threadIdx.x >> 5) at += sums[w];
            top += sums[w];
        }
        __syncthreads();
        return at;
    }
};

template <class Length, class Body> DEVICE void each_row(i64 n, Length length, Body body) {
    for (i64 first = (i64)blockIdx.x * WARPS; first < n; first += (i64)gridDim.x * WARPS) {
        const i64 r = first + (threadIdx.x >> 5), entries = r < n ? length(r) : 0;
        if (r < n && entries < LONG_ROW) body(Warp(), r);
        if (!__syncthreads_or(entries >= LONG_ROW)) continue;
        for (i64 q = first; q < first + WARPS && q < n; q++)
            if (length(q) >= LONG_ROW) body(Block(), q);
    }
}
