// One matrix entry under an operator with positions.

// The row of entry e, among those from low to high - 1: the last one that begins at or before it (empty rows are passed
// over).
DEVICE i64 row_of(const PTR *indptr, i64 low, i64 high, i64 e) {
    while (high - low > 1) {
        const i64 middle = (low + high) >> 1;
        if (load(indptr + middle) <= e) low = middle;
        else high = middle;
    }
    return low;
}

DEVICE bool keeps(const IDX *cols, const T_A *avals, i64 astride, THUNK thunk, const i64 *starts, const i64 *bounds,
                  i64 p, i64 row, i64 e) {
    const i64 col = USES_COL ? user_id(load(cols + e), starts, bounds, p) : 0;
    return of_entry(READS_X ? load(avals + e * astride) : T_A(), row, col, thunk);
}
