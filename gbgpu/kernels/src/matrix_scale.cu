#include "entries.cuh"

KERNEL matrix_scale(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const T_B *xvals,
                    T_OUT *out_vals) {
    each_entry(n, indptr, BY_ROW && READS_B, [=](i64 e, i64 r) {
        if (r < 0) return;
        const T_B b = READS_B ? load(xvals + (BY_ROW ? r : (i64)load(cols + e))) : T_B();
        out_vals[e] = scaled(READS_A ? load(avals + e * astride) : T_A(), b);
    });
}
