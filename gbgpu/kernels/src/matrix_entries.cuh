#include "entries.cuh"

// One matrix entry under an operator with positions.
DEVICE bool keeps(const IDX *cols, const T_A *avals, i64 astride, THUNK thunk, const i64 *starts, const i64 *bounds,
                  i64 p, i64 row, i64 e) {
    const i64 col = USES_COL ? user_id(load(cols + e), starts, bounds, p) : 0;
    return of_entry(READS_X ? load(avals + e * astride) : T_A(), row, col, thunk);
}
