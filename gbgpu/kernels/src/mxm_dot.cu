// An entry of M a thread: the shorter of the two sorted lists is walked, each of its columns looked for in the rest of
// the longer one. Rows of A with at least `limit` entries are left to mxm_dot_heavy.

template <class T> DEVICE i64 seek(const T *cols, i64 low, i64 high, i64 col) {
    while (low < high) {
        const i64 middle = (low + high) >> 1;
        if (load(cols + middle) < col) low = middle + 1;
        else high = middle;
    }
    return low;
}

KERNEL mxm_dot(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const PTR *bptr,
               const IDX *bcols, const T_B *bvals, i64 bstride, const PTR *mptr, const IDX *mcols, const i64 *kstarts,
               const i64 *kbounds, const i64 *jstarts, const i64 *jbounds, i64 row0, const int *marks, Z *out_vals,
               bool *out_found, i64 kp, i64 jp, i64 total, i64 limit) {
    const Tables ids = {kstarts, kbounds, jstarts, jbounds, kp, jp};
    const Operands product = {avals, astride, bvals, bstride};
    if (ISO && thread_id() == 0 && load(indptr + n)) out_vals[0] = product(0, 0, 0, 0, 0);
    for (i64 q = thread_id(); q < total && q < load(mptr + n); q += thread_count()) {
        const i64 r = row_of(mptr, n, q), j = load(mcols + q), row = row0 + r, col = ids.col(j);
        i64 e = load(indptr + r), f = load(bptr + j);
        const i64 a_end = load(indptr + r + 1), b_end = load(bptr + j + 1);
        if (a_end - e >= limit) continue;
        const bool a_shorter = a_end - e <= b_end - f;
        Z acc = START;
        bool hit = false;
        while (e < a_end && f < b_end) {
            const i64 k = a_shorter ? load(cols + e) : load(bcols + f);
            if (a_shorter) f = seek(bcols, f, b_end, k);
            else e = seek(cols, e, a_end, k);
            if (e < a_end && f < b_end && load(cols + e) == load(bcols + f)) {
                hit = true;
                if (!ISO) {
                    const Z t = product(e, f, row, ids.inner(k), col);
                    acc = IS_ANY ? t : add(acc, t);
                }
                if (ISO || is_terminal(acc)) break;
            }
            if (a_shorter) e++;
            else f++;
        }
        if (!hit) continue;
        out_found[q] = true;
        if (!ISO) out_vals[q] = acc;
    }
}

// A block for each long row of A: its columns go into a table in shared memory, as many at a time as fill half of it;
// groups of lanes take the entries of M and look each column of B's row up.

const int TABLE = 16384;

struct Table {
    int *keys, *places; // column or -1; entry of A relative to the first of the row
    u32 mask;
    DEVICE u32 hash(int col) const { return (u32)col * 2654435761u >> 7 & mask; }
    DEVICE void put(int col, int place) {
        u32 h = hash(col);
        while (atomicCAS(keys + h, -1, col) != -1)
            h = (h + 1) & mask;
        if (READS_A) places[h] = place;
    }
    DEVICE int find(int col) const { // where, or -1
        for (u32 h = hash(col);; h = (h + 1) & mask) {
            const int key = keys[h];
            if (key == col) return h;
            if (key == -1) return -1;
        }
    }
};

KERNEL_1024 mxm_dot_heavy(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const PTR *bptr,
                          const IDX *bcols, const T_B *bvals, i64 bstride, const PTR *mptr, const IDX *mcols,
                          const i64 *kstarts, const i64 *kbounds, const i64 *jstarts, const i64 *jbounds, i64 row0,
                          const int *heavy, Z *out_vals, bool *out_found, i64 kp, i64 jp, i64 heavies, i64 lanes,
                          u64 *queue) {
    extern __shared__ int shared[];
    __shared__ i64 mine;
    const Tables ids = {kstarts, kbounds, jstarts, jbounds, kp, jp};
    const Operands product = {avals, astride, bvals, bstride};
    const int width = (int)lanes, sub = lane_id() & (width - 1);
    const u32 group = (threadIdx.x & ~31u) / width + lane_id() / width, groups = blockDim.x / width;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) mine = (i64)atomicAdd(queue, 1ull);
        __syncthreads();
        if (mine >= heavies) break;
        const i64 r = heavy[mine], begin = load(indptr + r), end = load(indptr + r + 1), row = row0 + r;
        for (i64 first = begin; first < end; first += TABLE / 2) {
            const i64 some = end - first < TABLE / 2 ? end - first : TABLE / 2;
            u32 size = 256;
            while (size < 2 * some)
                size *= 2;
            Table table = {shared, shared + TABLE, size - 1};
            __syncthreads();
            for (u32 h = threadIdx.x; h < size; h += blockDim.x)
                table.keys[h] = -1;
            __syncthreads();
            for (i64 e = threadIdx.x; e < some; e += blockDim.x)
                table.put((int)load(cols + first + e), (int)e);
            __syncthreads();
            const i64 m0 = load(mptr + r), m1 = load(mptr + r + 1);
            for (i64 base = m0; base < m1; base += groups) { // whole warps together
                const i64 q = base + group;
                const bool on = q < m1;
                const i64 j = on ? load(mcols + q) : 0, b_end = on ? load(bptr + j + 1) : 0;
                Z acc = START;
                bool hit = false;
                for (i64 f = on ? load(bptr + j) + sub : 0; f < b_end; f += width) {
                    const i64 k = load(bcols + f);
                    const int at = table.find((int)k);
                    if (at < 0) continue;
                    hit = true;
                    if (ISO) break;
                    const i64 e = READS_A ? first + table.places[at] : 0;
                    const Z t = product(e, f, row, ids.inner(k), ids.col(j));
                    acc = IS_ANY ? t : add(acc, t);
                }
                __syncwarp();
                join_lanes(acc, hit, width);
                if (!on || !hit || sub) continue;
                if (!ISO) out_vals[q] = out_found[q] && !IS_ANY ? add(out_vals[q], acc) : acc;
                out_found[q] = true;
            }
        }
    }
}
