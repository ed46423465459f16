// An entry of M a thread: the shorter of the two sorted lists is walked, each of its columns looked for in the rest of
// the longer one.

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
               const i64 *kbounds, const i64 *jstarts, const i64 *jbounds, i64 row0, const void *marks, Z *out_vals,
               bool *out_found, i64 kp, i64 jp, i64 total) {
    const Tables ids = {kstarts, kbounds, jstarts, jbounds, kp, jp};
    const Operands product = {avals, astride, bvals, bstride};
    if (ISO && thread_id() == 0 && load(indptr + n)) out_vals[0] = product(0, 0, 0, 0, 0);
    for (i64 q = thread_id(); q < total && q < load(mptr + n); q += thread_count()) {
        const i64 r = row_of(mptr, n, q), j = load(mcols + q), row = row0 + r, col = ids.col(j);
        i64 e = load(indptr + r), f = load(bptr + j);
        const i64 a_end = load(indptr + r + 1), b_end = load(bptr + j + 1);
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
