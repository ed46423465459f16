#include "matrix_entries.cuh"

// Entry by entry; the row of an entry is searched for only if the operator wants it.
KERNEL matrix_apply(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, THUNK thunk,
                    const i64 *starts, const i64 *bounds, i64 row0, const i64 *users, T_OUT *out_vals, i64 p) {
    const i64 total = load(indptr + n);
    for (i64 e = thread_id(); e < total; e += thread_count()) {
        const i64 row = USES_ROW ? row_of(indptr, 0, n, e) : 0,
                  col = USES_COL ? user_id(load(cols + e), starts, bounds, p) : 0;
        const T_A x = READS_X ? load(avals + e * astride) : T_A();
        out_vals[e] = to_out(of_entry(x, row_id(row, row0, users), col, thunk));
    }
}
