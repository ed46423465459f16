#include "mxm.cuh"

// A thread a term.
KERNEL mxm_expand(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const PTR *bptr,
                  const IDX *bcols, const T_B *bvals, i64 bstride, const i64 *begins, i64 width, const i64 *kstarts,
                  const i64 *kbounds, const i64 *jstarts, const i64 *jbounds, i64 row0, const i64 *users, i64 *out_keys,
                  Z *out_vals, i64 kp, i64 jp, i64 total) {
    const Tables ids = {kstarts, kbounds, jstarts, jbounds, kp, jp};
    const Operands product = {avals, astride, bvals, bstride};
    const i64 entries = load(indptr + n), terms = entries ? load(begins + entries) : 0;
    if (ISO && thread_id() == 0 && terms) out_vals[0] = product(0, 0, 0, 0, 0);
    for (i64 q = thread_id(); q < terms; q += thread_count()) {
        const i64 e = last_upto(begins, 0, entries, q), r = last_upto(indptr, 0, n, e), k = load(cols + e);
        const i64 f = load(bptr + k) + q - load(begins + e), c = load(bcols + f);
        out_keys[q] = r * width + c;
        if (!ISO) out_vals[q] = product(e, f, row_id(r, row0, users), ids.inner(k), ids.col(c));
    }
}
