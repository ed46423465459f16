#include "matrix_entries.cuh"
#include "rows.cuh"

// An iso matrix stays iso: its value is not copied.
KERNEL matrix_select(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, THUNK thunk,
                     const i64 *starts, const i64 *bounds, i64 row0, const i64 *users, const PTR *out_indptr,
                     IDX *out_cols, T_A *out_vals, i64 p) {
    each_row(
        n, [=](i64 r) { return (i64)load(indptr + r + 1) - load(indptr + r); },
        [=](auto group, i64 r) {
            const i64 end = load(indptr + r + 1), row = row_id(r, row0, users);
            i64 top = load(out_indptr + r);
            for (i64 base = load(indptr + r); base < end; base += group.size) {
                const i64 e = base + group.rank();
                const bool on = e < end && keeps(cols, avals, astride, thunk, starts, bounds, p, row, e);
                const i64 at = group.place(on, top);
                if (!on) continue;
                out_cols[at] = cols[e];
                if (astride) out_vals[at] = avals[e];
            }
        });
}
