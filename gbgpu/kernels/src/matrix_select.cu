#include "matrix_entries.cuh"

KERNEL matrix_select(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, THUNK thunk,
                     const i64 *starts, const i64 *bounds, i64 row0, const i64 *users, i64 *out_words, i64 p) {
    each_entry(n, indptr, USES_ROW, [=](i64 e, i64 r) {
        const bool on = r >= 0 && keeps(cols, avals, astride, thunk, starts, bounds, p, row_id(r, row0, users), e);
        const u32 votes = __ballot_sync(ALL, on);
        if (lane_id() == 0) ((u32 *)out_words)[e >> 5] = votes;
    });
}
