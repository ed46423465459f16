#include "mxm.cuh"

// B has all its entries: a thread a value of the result, neighbours share the row of A and read B's rows together.
KERNEL mxm_dense(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const PTR *bptr,
                 const IDX *bcols, const T_B *bvals, i64 bstride, i64 width, const i64 *kstarts, const i64 *kbounds,
                 const i64 *jstarts, const i64 *jbounds, i64 row0, const i64 *users, const i64 *out_indptr, Z *out_vals,
                 i64 kp, i64 jp, i64 total) {
    const Tables ids = {kstarts, kbounds, jstarts, jbounds, kp, jp};
    const Operands product = {avals, astride, bvals, bstride};
    if (ISO) {
        if (thread_id() == 0 && load(indptr + n)) out_vals[0] = product(0, 0, 0, 0, 0);
        return;
    }
    for (i64 q = thread_id(); q < load(out_indptr + n); q += thread_count()) {
        const i64 r = last_upto(out_indptr, 0, n, q), c = q - load(out_indptr + r);
        Z acc = START;
        for (i64 e = load(indptr + r); e < load(indptr + r + 1); e++) {
            const i64 k = load(cols + e), f = load(bptr + k) + c;
            const Z t = product(e, f, row_id(r, row0, users), ids.inner(k), USES_COL ? ids.col(load(bcols + f)) : 0);
            acc = IS_ANY ? t : add(acc, t);
            if (is_terminal(acc)) break;
        }
        out_vals[q] = acc;
    }
}
