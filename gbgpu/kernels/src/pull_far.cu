#include "monoid.cuh"
#include "short_rows.cuh"

// Products of short rows with a full vector that lies with its owners: of slots from `lo` on the first n are here, in
// own; slots from first[b] on are of owner b, and where it has them is at[b]. What is read of others is little.
const int OWNERS = 16;
struct Far {
    i64 lo, n;
    const T_B *own;
    i64 first[OWNERS + 1];
    const T_B *at[OWNERS];

    DEVICE T_B operator()(IDX k) const {
        const i64 i = k - lo;
        if ((u64)i < (u64)n) return load(own + i);
        int b = 0;
        while (k >= first[b + 1]) b++;
        return load(at[b] + (k - first[b]));
    }
};

KERNEL_OF(256, 5) pull_far(
    i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const T_B *xvals, i64 xstride,
    const i64 *xwords, const i64 *mwords, i64 flags, const i64 *starts, const i64 *bounds, i64 row0, const i64 *users,
    const int *heavy, T_OUT *out_vals, i64 *out_words, i64 *count, i64 *stats, i64 p,
    const __grid_constant__ Far far) {
    short_rows<true>(n, indptr, cols, avals, astride, far, xwords, mwords, flags, starts, bounds, row0, users, out_vals,
                     out_words, count, stats, p);
}
