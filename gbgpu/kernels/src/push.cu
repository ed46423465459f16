#include "atomics.cuh"
#include "arrive.cuh"

// Products, frontier vertex by frontier vertex: the entries of its row scatter into a workspace. A warp takes up to 32
// vertices and walks their entries together, as one run of entries. Vertices of at least HUB entries go to a queue for
// push_hubs; from LONG entries on, where the vertices are so FEW that others would wait for the warp that has them.

const i64 HUB = 1024; // also the entries of a tile in push_hubs
const i64 FEW = 1 << 16, LONG = 128; // as in gpu.py

// queue[0]: hubs << 32 | tiles; queue[1]: blocks of push_hubs that are done; queue[2 + h]: first tile << 32 | place in
// the frontier
DEVICE void enqueue(u64 *queue, i64 at, i64 degree) {
    const u64 tiles = (degree + HUB - 1) / HUB, old = atomicAdd(queue, (1ull << 32) | tiles);
    queue[2 + (old >> 32)] = old << 32 | (u64)at;
}

KERNEL push(i64 n, const i64 *count, const IDX *slots, const T_B *xvals, i64 xstride, const i64 *xwords, i64 flags,
            const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const i64 *starts, const i64 *bounds,
            i64 row0, const i64 *users, const i64 *mwords, i64 own_lo, i64 own_hi, Z *acc_vals, i64 *acc_words,
            IDX *touched, i64 *touched_count, i64 *stats, i64 p, u64 *queue) {
    const i64 total = flags & XLIST ? count[0] : n;
    const i64 share = (total + warp_count() - 1) / warp_count(), each = share < 1 ? 1 : share > 32 ? 32 : share;
    const i64 hub = total <= FEW ? LONG : HUB;
    i64 entries = 0, expanded = 0, found = 0;
    for (i64 first = warp_id() * each; first < total; first += warp_count() * each) {
        const i64 at = first + lane_id();
        const bool on = lane_id() < each && at < total && (flags & (XLIST | XFULL) || bit(xwords, at));
        i64 begin = 0, row = 0;
        u32 degree = 0;
        if (on) {
            row = flags & XLIST ? slots[at] : at;
            begin = load(indptr + row);
            const i64 length = load(indptr + row + 1) - begin;
            entries += length;
            expanded++;
            if (length >= hub) enqueue(queue, at, length);
            else degree = (u32)length;
        }
        const T_B x = READS_X && on ? xvals[at * xstride] : T_B();
        const u32 upto = inclusive_sum(degree), edges = __shfl_sync(ALL, upto, 31);
        for (u32 base = 0; base < edges; base += 32) {
            const u32 t = base + lane_id();
            int owner = 0; // the first lane with upto > t
            for (int o = 16; o; o >>= 1)
                if (__shfl_sync(ALL, upto, owner + o - 1) <= t) owner += o;
            const u32 skipped = __shfl_sync(ALL, upto - degree, owner);
            const i64 e = __shfl_sync(ALL, begin, owner) + (t - skipped);
            const i64 inner = USES_INNER ? row_id(__shfl_sync(ALL, row, owner), row0, users) : 0;
            const T_B xk = READS_X ? (T_B)__shfl_sync(ALL, x, owner) : T_B();
            bool go = t < edges;
            i64 slot = 0;
            u32 seen = 0;
            Z v = START;
            if (go) {
                slot = load(cols + e);
                if (AHEAD) seen = marks_at(acc_words, slot);
                if (flags & MASKED && own_lo <= slot && slot < own_hi) go = lets(mwords, slot - own_lo, flags);
                if (go && !ISO) {
                    const T_A a = READS_A ? load(avals + e * astride) : T_A();
                    v = term(a, xk, inner, USES_OUTER ? user_id(slot, starts, bounds, p) : 0);
                }
            }
            arrive(go, slot, v, seen, acc_vals, acc_words, touched, touched_count, flags, found);
        }
    }
    if (flags & DENSE) block_add(touched_count, found);
    if (ISO && thread_id() == 0) acc_vals[0] = term(READS_A ? avals[0] : T_A(), READS_X ? xvals[0] : T_B(), 0, 0);
    if (flags & TRACE) {
        block_add(stats, entries);
        block_add(stats + 1, expanded);
    }
}

// All blocks together expand the queued vertices, tile by tile; the last one leaves the queue empty.
KERNEL push_hubs(i64 n, const i64 *count, const IDX *slots, const T_B *xvals, i64 xstride, const i64 *xwords, i64 flags,
                 const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const i64 *starts,
                 const i64 *bounds, i64 row0, const i64 *users, const i64 *mwords, i64 own_lo, i64 own_hi, Z *acc_vals,
                 i64 *acc_words, IDX *touched, i64 *touched_count, i64 *stats, i64 p, u64 *queue) {
    const u64 packed = queue[0];
    const i64 hubs = packed >> 32, tiles = packed & ALL;
    i64 found = 0;
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        i64 low = 0, high = hubs;
        while (high - low > 1) {
            const i64 middle = (low + high) >> 1;
            if ((i64)(queue[2 + middle] >> 32) <= tile) low = middle;
            else high = middle;
        }
        const u64 hub = queue[2 + low];
        const i64 at = hub & ALL, row = flags & XLIST ? slots[at] : at, end = load(indptr + row + 1);
        const i64 begin = load(indptr + row) + (tile - (i64)(hub >> 32)) * HUB;
        const T_B x = READS_X ? xvals[at * xstride] : T_B();
        for (int step = 0; step < HUB; step += blockDim.x) {
            const i64 e = begin + step + threadIdx.x;
            bool go = e < end;
            i64 slot = 0;
            u32 seen = 0;
            Z v = START;
            if (go) {
                slot = load(cols + e);
                if (AHEAD) seen = marks_at(acc_words, slot);
                if (flags & MASKED && own_lo <= slot && slot < own_hi) go = lets(mwords, slot - own_lo, flags);
                if (go && !ISO) {
                    const T_A a = READS_A ? load(avals + e * astride) : T_A();
                    v = term(a, x, row_id(row, row0, users), USES_OUTER ? user_id(slot, starts, bounds, p) : 0);
                }
            }
            arrive(go, slot, v, seen, acc_vals, acc_words, touched, touched_count, flags, found);
        }
    }
    if (flags & DENSE) block_add(touched_count, found);
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(queue + 1, 1ull) == gridDim.x - 1) queue[0] = queue[1] = 0;
}
