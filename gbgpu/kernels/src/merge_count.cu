#include "rows.cuh"
#include "merge_rows.cuh"

KERNEL merge_count(i64 n, const PTR *aptr, const IDX *acols, const PTR *bptr, const IDX *bcols, i64 keep,
                   i64 *out_lengths) {
    each_row(
        n, [=](i64 r) { return (i64)(load(aptr + r + 1) - load(aptr + r)) + (load(bptr + r + 1) - load(bptr + r)); },
        [=](auto group, i64 r) {
            const i64 length = merge_row<false>(group, r, aptr, acols, bptr, bcols, keep, [](i64, i64, i64) {});
            if (group.rank() == 0) out_lengths[r] = length;
        });
}
