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

// A warp takes up to 32 rows in turn before its block looks for long ones among the block's.
template <class Length, class Body> DEVICE void each_row(i64 n, Length length, Body body) {
    const i64 share = (n + warp_count() - 1) / warp_count(), each = share > 32 ? 32 : share, rows = each * WARPS;
    for (i64 first = blockIdx.x * rows; first < n; first += gridDim.x * rows) {
        const i64 mine = first + (threadIdx.x >> 5) * each;
        bool any = false;
        for (i64 r = mine; r < mine + each && r < n; r++)
            if (length(r) < LONG_ROW) body(Warp(), r);
            else any = true;
        if (!__syncthreads_or(any)) continue;
        for (i64 q = first; q < first + rows && q < n; q++)
            if (length(q) >= LONG_ROW) body(Block(), q);
    }
}
