// A worker of a relaxation: TEAM threads that extend vertices together: a thread, a warp, or a block.

const u32 TEAM = WORKER, WORKERS = 256 / TEAM; // threads of a worker, workers of a block

// What each wrote before, all see after.
DEVICE void together() {
    if (TEAM == 32) __syncwarp();
    if (TEAM > 32) __syncthreads();
}

// What the first thread has.
template <class T> DEVICE T first_of(T v) {
    if (TEAM == 1) return v;
    if (TEAM == 32) return __shfl_sync(ALL, v, 0);
    __shared__ T first;
    if (!threadIdx.x) first = v;
    __syncthreads();
    const T found = first;
    __syncthreads();
    return found;
}

// Of the threads that append together: all of a warp, or whoever calls.
DEVICE bool any_of_warp(bool on) {
    if (TEAM == 1) return on;
    return __any_sync(ALL, on);
}
DEVICE bool any(bool on) {
    if (TEAM > 32) return __syncthreads_or(on);
    return any_of_warp(on);
}

DEVICE i64 append_of(bool on, i64 *count) {
    if (TEAM > 1) return append(on, count);
    return on ? (i64)atomicAdd((u64 *)count, 1ull) : 0;
}

// Sums over the threads before, and over all.
DEVICE void sum_before(u32 v, u32 &before, u32 &all) {
    before = 0, all = v;
    if (TEAM == 1) return;
    const u32 upto = inclusive_sum(v);
    before = upto - v;
    all = __shfl_sync(ALL, upto, 31);
    if (TEAM == 32) return;
    __shared__ u32 sums[8];
    if (!lane_id()) sums[threadIdx.x >> 5] = all;
    __syncthreads();
    all = 0;
    for (u32 w = 0; w < 8; w++) {
        before += w < threadIdx.x >> 5 ? sums[w] : 0;
        all += sums[w];
    }
    __syncthreads();
}
DEVICE void count_before(bool on, u32 &before, u32 &all) {
    if (TEAM != 32) return sum_before(on, before, all);
    const u32 votes = __ballot_sync(ALL, on);
    before = __popc(votes & lanes_below());
    all = __popc(votes);
}

// The rows of a turn that have entries, and whose row the t-th of all their entries is in.
struct Rows {
    i64 first[TEAM]; // the entry of A that t = 0 would be, if the row went back so far
    IDX vertex[TEAM];
    u32 starts[TEAM > 32 ? TEAM : 1], count;

    DEVICE void list(IDX v, i64 begin, u32 degree, u32 start) {
        u32 row, all;
        count_before(degree > 0, row, all);
        if (degree) {
            first[row] = begin - start;
            vertex[row] = v;
            if (TEAM > 32) starts[row] = start;
        }
        if (TEAM > 32) count = all;
    }

    // For threads t = base, base + 1 ... of a worker, each with the row that it listed.
    DEVICE u32 of(u32 t, u32 base, u32 degree, u32 start) const {
        if (TEAM == 1) return 0;
        if (TEAM == 32) {
            const u32 begun = __popc(__ballot_sync(ALL, degree && start < base));
            const u32 here = __reduce_or_sync(ALL, degree && start - base < 32 ? 1u << (start - base) : 0);
            return begun + __popc(here << (31 - lane_id())) - 1;
        }
        u32 row = 0;
        for (u32 step = TEAM / 2; step; step >>= 1)
            if (row + step < count && starts[row + step] <= t) row += step;
        return row;
    }
};

// Vertices of a warp, or of whoever calls if workers are threads, into a list of so many places; returns the place.
DEVICE i64 put(bool on, IDX v, IDX *list, i64 room, Work *progress, i64 *count) {
    const i64 at = append_of(on, count);
    if (on && at < room) list[at] = v;
    if (on && at >= room) *(volatile i64 *)&progress->crowded = 1;
    return at;
}
