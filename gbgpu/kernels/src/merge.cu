#include "rows.cuh"
#include "merge_rows.cuh"

KERNEL merge(i64 n, const PTR *aptr, const IDX *acols, const T_A *avals, i64 astride, const PTR *bptr, const IDX *bcols,
             const T_B *bvals, i64 bstride, i64 keep, const i64 *starts, const i64 *bounds, i64 row0, const i64 *users,
             DEFAULT_A adefault, DEFAULT_B bdefault, const PTR *out_indptr, IDX *out_cols, T_OUT *out_vals, i64 p) {
    each_row(
        n, [=](i64 r) { return (i64)(load(aptr + r + 1) - load(aptr + r)) + (load(bptr + r + 1) - load(bptr + r)); },
        [=](auto group, i64 r) {
            const i64 top = load(out_indptr + r);
            merge_row<true>(group, r, aptr, acols, bptr, bcols, keep, [=](i64 at, i64 e, i64 f) {
                const IDX slot = e >= 0 ? acols[e] : bcols[f];
                const i64 row = row_id(r, row0, users), col = USES_COL ? user_id(slot, starts, bounds, p) : 0;
                out_cols[top + at] = slot;
                out_vals[top + at] = e < 0   ? only_b(bvals[f * bstride], adefault, row, col)
                                     : f < 0 ? only_a(avals[e * astride], bdefault, row, col)
                                             : both(avals[e * astride], bvals[f * bstride], row, col);
            });
        });
}
