#include "matrix_entries.cuh"

// A warp takes 1024 entries: its lanes 32 at a time, whose bits are a half of a word.
KERNEL matrix_select(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, THUNK thunk,
                     const i64 *starts, const i64 *bounds, i64 row0, const i64 *users, i64 *out_words, i64 p) {
    const i64 total = load(indptr + n), halves = (total + 63) / 64 * 2;
    for (i64 first = warp_id() * 1024; first < total; first += warp_count() * 1024) {
        const i64 last = first + 1023 < total ? first + 1023 : total - 1;
        i64 row = 0, end = 0;  // the rows that it may be
        if (USES_ROW) row = row_of(indptr, 0, n, first), end = row_of(indptr, row, n, last) + 1;
        u32 mine = 0;
        for (int i = 0; i < 32; i++) {
            const i64 e = first + 32 * i + lane_id();
            if (USES_ROW && e < total) row = row_of(indptr, row, end, e);
            const bool on =
                e < total && keeps(cols, avals, astride, thunk, starts, bounds, p, row_id(row, row0, users), e);
            const u32 votes = __ballot_sync(ALL, on);
            if (lane_id() == i) mine = votes;
        }
        const i64 half = first / 32 + lane_id();
        if (half < halves) ((u32 *)out_words)[half] = mine;
    }
}
