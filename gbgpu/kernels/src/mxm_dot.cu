#include "monoid.cuh"
#include "mxm.cuh"

// Entries of M row by row: the columns of A's row go into a table in shared memory; groups of lanes take entries of M
// and look each column of B's row up, or search for A's columns there if that row is much longer. A warp takes a row.
// Rows of at least `limit` entries in A or in M are cut into pieces, some entries of M each, which blocks take: as many
// entries of A at a time as fill half the table. Where all rows are short a thread takes a row, without a table.

const int WARP_TABLE = 256, TABLE = 8192; // places; powers of two
const i64 SPARE = 8;   // places an entry, if there are so many: the first one looked at is mostly free
const i64 PIECE = 512; // entries of M, as device/rows.py cuts them

struct Warp {
    DEVICE u32 size() const { return 32; }
    DEVICE u32 rank() const { return lane_id(); }
    DEVICE void sync() const { __syncwarp(); }
};

struct Block {
    DEVICE u32 size() const { return blockDim.x; }
    DEVICE u32 rank() const { return threadIdx.x; }
    DEVICE void sync() const { __syncthreads(); }
};

struct Table {
    IDX *keys; // a column, or -1
    int *places; // its entry of A, from the first in the table
    u32 mask;
    DEVICE u32 hash(IDX col) const { return (u32)col * 2654435761u >> 7 & mask; }
    DEVICE bool take(IDX *key, IDX col) const {
        if constexpr (sizeof(IDX) == 4) return atomicCAS((u32 *)key, ~0u, (u32)col) == ~0u;
        else return atomicCAS((u64 *)key, ~0ull, (u64)col) == ~0ull;
    }
    DEVICE void put(IDX col, int place) const {
        u32 h = hash(col);
        while (!take(keys + h, col))
            h = (h + 1) & mask;
        if (READS_A) places[h] = place;
    }
    DEVICE int find(IDX col) const { // where, or -1
        for (u32 h = hash(col);; h = (h + 1) & mask) {
            const IDX key = keys[h];
            if (key == col) return (int)h;
            if (key == -1) return -1;
        }
    }
};

struct Dots {
    const PTR *indptr;
    const IDX *cols;
    const PTR *bptr;
    const IDX *bcols;
    const PTR *mptr;
    const IDX *mcols;
    Tables ids;
    Operands product;
    i64 row0;
    const i64 *users;
    Z *out_vals;
    bool *out_found;
    int width;

    // Entries m0 .. m1 - 1 of M, of row r. `room`: places of the table.
    template <class Team> DEVICE void row(Team team, i64 r, i64 m0, i64 m1, IDX *keys, int *places, i64 room) const {
        const i64 begin = load(indptr + r), end = load(indptr + r + 1), warps = team.size() >> 5;
        if (m0 == m1) return;
        for (i64 first = begin; first < end; first += room / 2) {
            const i64 some = end - first < room / 2 ? end - first : room / 2;
            u32 size = 32;
            while (size < SPARE * some && size < room)
                size *= 2;
            const Table table = {keys, places, size - 1};
            team.sync();
            for (u32 h = team.rank(); h < size; h += team.size())
                keys[h] = -1;
            team.sync();
            for (i64 e = team.rank(); e < some; e += team.size())
                table.put(load(cols + first + e), (int)e);
            team.sync();
            for (i64 base = m0 + (team.rank() & ~31u); base < m1; base += 32 * warps)
                entries(base, m1 - base < 32 ? (int)(m1 - base) : 32, r, first, some, table);
        }
    }

    // Up to 32 entries of M by a warp: a lane looks up where the row of B of each lies; groups of lanes go through it.
    // The first columns of the next ones are on their way meanwhile.
    DEVICE void entries(i64 base, int count, i64 r, i64 first, i64 some, const Table &table) const {
        const bool on = (int)lane_id() < count;
        const IDX mine = on ? load(mcols + base + lane_id()) : 0;
        const PTR mine_begin = on ? load(bptr + mine) : 0, mine_end = on ? load(bptr + mine + 1) : 0;
        const int sub = lane_id() & (width - 1), group = lane_id() / width, groups = 32 / width;
        const i64 row = row_id(r, row0, users);
        PTR b = __shfl_sync(ALL, mine_begin, group), b_end = __shfl_sync(ALL, mine_end, group);
        IDX ahead = sub < b_end - b ? load(bcols + b + sub) : 0;
        for (int t = group; t - group < count; t += groups) {
            const PTR begin = b, end = b_end;
            IDX next = ahead;
            b = __shfl_sync(ALL, mine_begin, t + groups & 31);
            b_end = __shfl_sync(ALL, mine_end, t + groups & 31);
            if (sub < b_end - b) ahead = load(bcols + b + sub);
            const i64 col = ids.col(__shfl_sync(ALL, mine, t));
            Z acc = START;
            bool hit = false;
            if (end - begin > 32 * some) {
                for (i64 e = first + sub; e < first + some; e += width) {
                    const i64 k = load(cols + e), f = lower_bound(bcols, begin, end, k);
                    if (f < end && load(bcols + f) == k && add_term(e, f, row, k, col, acc, hit)) break;
                }
            } else {
                const IDX *at = bcols + begin + sub;
                for (PTR left = end - begin - sub; left > 0; left -= width, at += width) {
                    const IDX k = next;
                    if (left > width) next = load(at + width);
                    const int found = table.find(k);
                    const i64 e = READS_A && found >= 0 ? first + table.places[found] : 0;
                    if (found >= 0 && add_term(e, at - bcols, row, k, col, acc, hit)) break;
                }
            }
            __syncwarp();
            join_lanes(acc, hit, width);
            if (hit && !sub) put(base + t, acc);
        }
    }

    // Row r by one thread: each entry of M searches B's row for A's columns.
    DEVICE void alone(i64 r) const {
        const i64 begin = load(indptr + r), end = load(indptr + r + 1), m1 = load(mptr + r + 1);
        if (begin == end) return;
        const i64 row = row_id(r, row0, users);
        for (i64 q = load(mptr + r); q < m1; q++) {
            const i64 j = load(mcols + q), b_end = load(bptr + j + 1), col = ids.col(j);
            i64 f = load(bptr + j);
            Z acc = START;
            bool hit = false;
            for (i64 e = begin; e < end && f < b_end; e++) {
                const i64 k = load(cols + e);
                f = lower_bound(bcols, f, b_end, k);
                if (f < b_end && load(bcols + f) == k && add_term(e, f, row, k, col, acc, hit)) break;
            }
            if (hit) put(q, acc);
        }
    }

    DEVICE void put(i64 q, Z acc) const {
        if (!ISO) out_vals[q] = out_found[q] && !IS_ANY ? add(out_vals[q], acc) : acc;
        out_found[q] = true;
    }

    // True if no later term can change the sum.
    DEVICE bool add_term(i64 e, i64 f, i64 row, i64 k, i64 col, Z &acc, bool &hit) const {
        hit = true;
        if (ISO) return true;
        const Z t = product(e, f, row, ids.inner(k), col);
        acc = IS_ANY ? t : add(acc, t);
        return is_terminal(acc);
    }
};

// `lanes` 0: a thread takes a row. (Blocks a multiprocessor: what waits for memory needs others beside it.)
KERNEL_OF(256, 6) mxm_dot(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const PTR *bptr,
                          const IDX *bcols, const T_B *bvals, i64 bstride, const PTR *mptr, const IDX *mcols,
                          const i64 *kstarts, const i64 *kbounds, const i64 *jstarts, const i64 *jbounds, i64 row0,
                          const i64 *users, const i64 *marks, Z *out_vals, bool *out_found, i64 kp, i64 jp, i64 limit,
                          i64 lanes) {
    __shared__ IDX keys[8][WARP_TABLE];
    __shared__ int places[8][READS_A ? WARP_TABLE : 1];
    const Operands product = {avals, astride, bvals, bstride};
    const Dots dots = {indptr, cols, bptr, bcols, mptr, mcols, {kstarts, kbounds, jstarts, jbounds, kp, jp}, product,
                       row0, users, out_vals, out_found, (int)lanes};
    if (ISO && thread_id() == 0 && load(indptr + n)) out_vals[0] = product(0, 0, 0, 0, 0);
    if (!lanes) {
        for (i64 r = thread_id(); r < n; r += thread_count())
            dots.alone(r);
        return;
    }
    const int w = threadIdx.x >> 5;
    for (i64 r = warp_id(); r < n; r += warp_count()) {
        const i64 m0 = load(mptr + r), m1 = load(mptr + r + 1);
        if (m1 - m0 < limit && load(indptr + r + 1) - load(indptr + r) < limit)
            dots.row(Warp(), r, m0, m1, keys[w], places[w], WARP_TABLE);
    }
}

// `pieces`: of each the row, and its first entry of M.
KERNEL_OF(512, 3) mxm_dot_heavy(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride,
                                const PTR *bptr, const IDX *bcols, const T_B *bvals, i64 bstride, const PTR *mptr,
                                const IDX *mcols, const i64 *kstarts, const i64 *kbounds, const i64 *jstarts,
                                const i64 *jbounds, i64 row0, const i64 *users, const i64 *pieces, Z *out_vals,
                                bool *out_found, i64 kp, i64 jp, i64 count, i64 lanes, u64 *queue) {
    extern __shared__ i64 shared[];
    __shared__ i64 mine;
    const Dots dots = {indptr, cols, bptr, bcols, mptr, mcols, {kstarts, kbounds, jstarts, jbounds, kp, jp},
                       {avals, astride, bvals, bstride}, row0, users, out_vals, out_found, (int)lanes};
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) mine = (i64)atomicAdd(queue, 1ull);
        __syncthreads();
        if (mine >= count) break;
        const i64 r = load(pieces + 2 * mine), m0 = load(pieces + 2 * mine + 1), m1 = load(mptr + r + 1);
        IDX *keys = (IDX *)shared;
        dots.row(Block(), r, m0, m1 - m0 < PIECE ? m1 : m0 + PIECE, keys, (int *)(keys + TABLE), TABLE);
    }
}
