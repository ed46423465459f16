#include "matrix_entries.cuh"

KERNEL matrix_apply(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, THUNK thunk,
                    const i64 *starts, const i64 *bounds, i64 row0, const i64 *users, T_OUT *out_vals, i64 p) {
    each_entry(n, indptr, USES_ROW, [=](i64 e, i64 r) {
        if (r < 0) return;
        const i64 col = USES_COL ? user_id(load(cols + e), starts, bounds, p) : 0;
        const T_A x = READS_X ? load(avals + e * astride) : T_A();
        out_vals[e] = to_out(of_entry(x, row_id(r, row0, users), col, thunk));
    });
}
