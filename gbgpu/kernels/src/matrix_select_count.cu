#include "matrix_entries.cuh"
#include "rows.cuh"

KERNEL matrix_select_count(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, THUNK thunk,
                           const i64 *starts, const i64 *bounds, i64 row0, const i64 *users, i64 *out_lengths, i64 p) {
    each_row(
        n, [=](i64 r) { return (i64)load(indptr + r + 1) - load(indptr + r); },
        [=](auto group, i64 r) {
            const i64 end = load(indptr + r + 1), row = row_id(r, row0, users);
            i64 length = 0;
            for (i64 base = load(indptr + r); base < end; base += group.size) {
                const i64 e = base + group.rank();
                group.place(e < end && keeps(cols, avals, astride, thunk, starts, bounds, p, row, e), length);
            }
            if (group.rank() == 0) out_lengths[r] = length;
        });
}
