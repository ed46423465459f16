#include "rows.cuh"

KERNEL move_rows(i64 n, const i64 *slots, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride,
                 const IDX *names, i64 how, const i64 *out_begins, IDX *out_cols, T_A *out_vals) {
    each_row(
        n,
        [=](i64 k) {
            const i64 r = load(slots + k);
            return r < 0 ? 0 : (i64)load(indptr + r + 1) - load(indptr + r);
        },
        [=](auto group, i64 k) {
            const i64 r = load(slots + k);
            if (r < 0) return;
            const i64 end = load(indptr + r + 1), shift = load(out_begins + k) - load(indptr + r);
            for (i64 e = load(indptr + r) + group.rank(); e < end; e += group.size) {
                const IDX c = load(cols + e);
                out_cols[shift + e] = how & RENAMED ? load(names + c) : c;
                if (!ISO) out_vals[shift + e] = load(avals + e * astride);
            }
        });
}
