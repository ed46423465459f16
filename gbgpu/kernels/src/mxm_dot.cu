#include "monoid.cuh"
#include "mxm.cuh"

// Entries of M row by row: the columns of A's row go into a table in shared memory; groups of lanes take entries of M
// and look each column of B's row up, or search for A's columns there if that row is much longer. A warp takes a row of
// fewer than `limit` entries, a block each longer one, as many entries at a time as fill half its table.

const int WARP_TABLE = 256, TABLE = 16384; // places; powers of two

template <class T> DEVICE i64 seek(const T *cols, i64 low, i64 high, i64 col) {
    while (low < high) {
        const i64 middle = (low + high) >> 1;
        if (load(cols + middle) < col) low = middle + 1;
        else high = middle;
    }
    return low;
}

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

    // Row r of the result. `room`: places of the table.
    template <class Team> DEVICE void row(Team team, i64 r, IDX *keys, int *places, i64 room) const {
        const i64 begin = load(indptr + r), end = load(indptr + r + 1), m0 = load(mptr + r), m1 = load(mptr + r + 1);
        if (m0 == m1) return;
        for (i64 first = begin; first < end; first += room / 2) {
            const i64 some = end - first < room / 2 ? end - first : room / 2;
            u32 size = 32;
            while (size < 2 * some)
                size *= 2;
            const Table table = {keys, places, size - 1};
            team.sync();
            for (u32 h = team.rank(); h < size; h += team.size())
                keys[h] = -1;
            team.sync();
            for (i64 e = team.rank(); e < some; e += team.size())
                table.put(load(cols + first + e), (int)e);
            team.sync();
            const i64 groups = team.size() / width, group = team.rank() / width;
            for (i64 base = m0; base < m1; base += groups) // whole warps together
                entry(base + group, base + group < m1, r, first, some, table);
        }
    }

    DEVICE void entry(i64 q, bool on, i64 r, i64 first, i64 some, const Table &table) const {
        const int sub = lane_id() & (width - 1);
        const i64 j = on ? load(mcols + q) : 0, b = on ? load(bptr + j) : 0, b_end = on ? load(bptr + j + 1) : 0;
        const i64 row = row_id(r, row0, users), col = ids.col(j);
        Z acc = START;
        bool hit = false;
        if (b_end - b > 32 * some) {
            for (i64 e = first + sub; e < first + some; e += width) {
                const i64 k = load(cols + e), f = seek(bcols, b, b_end, k);
                if (f < b_end && load(bcols + f) == k && add_term(e, f, row, k, col, acc, hit)) break;
            }
        } else {
            IDX next = b + sub < b_end ? load(bcols + b + sub) : 0;
            for (i64 f = b + sub; f < b_end; f += width) {
                const IDX k = next;
                if (f + width < b_end) next = load(bcols + f + width);
                const int at = table.find(k);
                if (at >= 0 && add_term(READS_A ? first + table.places[at] : 0, f, row, k, col, acc, hit)) break;
            }
        }
        __syncwarp();
        join_lanes(acc, hit, width);
        if (!on || !hit || sub) return;
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

KERNEL mxm_dot(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const PTR *bptr,
               const IDX *bcols, const T_B *bvals, i64 bstride, const PTR *mptr, const IDX *mcols, const i64 *kstarts,
               const i64 *kbounds, const i64 *jstarts, const i64 *jbounds, i64 row0, const i64 *users, const int *marks,
               Z *out_vals, bool *out_found, i64 kp, i64 jp, i64 limit, i64 lanes) {
    __shared__ IDX keys[8][WARP_TABLE];
    __shared__ int places[8][READS_A ? WARP_TABLE : 1];
    const Operands product = {avals, astride, bvals, bstride};
    const Dots dots = {indptr, cols, bptr, bcols, mptr, mcols, {kstarts, kbounds, jstarts, jbounds, kp, jp}, product,
                       row0, users, out_vals, out_found, (int)lanes};
    if (ISO && thread_id() == 0 && load(indptr + n)) out_vals[0] = product(0, 0, 0, 0, 0);
    const int w = threadIdx.x >> 5;
    for (i64 r = warp_id(); r < n; r += warp_count())
        if (load(indptr + r + 1) - load(indptr + r) < limit) dots.row(Warp(), r, keys[w], places[w], WARP_TABLE);
}

KERNEL_1024 mxm_dot_heavy(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const PTR *bptr,
                          const IDX *bcols, const T_B *bvals, i64 bstride, const PTR *mptr, const IDX *mcols,
                          const i64 *kstarts, const i64 *kbounds, const i64 *jstarts, const i64 *jbounds, i64 row0,
                          const i64 *users, const int *heavy, Z *out_vals, bool *out_found, i64 kp, i64 jp, i64 heavies,
                          i64 lanes, u64 *queue) {
    extern __shared__ i64 shared[];
    __shared__ i64 mine;
    const Dots dots = {indptr, cols, bptr, bcols, mptr, mcols, {kstarts, kbounds, jstarts, jbounds, kp, jp},
                       {avals, astride, bvals, bstride}, row0, users, out_vals, out_found, (int)lanes};
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) mine = (i64)atomicAdd(queue, 1ull);
        __syncthreads();
        if (mine >= heavies) break;
        dots.row(Block(), heavy[mine], (IDX *)shared, (int *)((IDX *)shared + TABLE), TABLE);
    }
}
