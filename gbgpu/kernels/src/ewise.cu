#include "pairs.cuh"

KERNEL ewise(i64 n, const T_A *avals, i64 astride, const i64 *awords, const T_B *bvals, i64 bstride, const i64 *bwords,
             const T_C *cvals, i64 cstride, const i64 *cwords, i64 flags, i64 row0, const i64 *users,
             DEFAULT_A adefault, DEFAULT_B bdefault, T_OUT *out_vals, i64 *out_words, i64 *count,
             const DEFAULT_A *alate, const DEFAULT_B *blate) {
    i64 found = 0;
    each_pair(n, avals, astride, awords, bvals, bstride, bwords, cvals, cstride, cwords, flags, row0, users, adefault,
              bdefault, alate, blate, [&](i64 r, bool on, T_OUT value) {
                  if (on) out_vals[r] = value;
                  found += flags & OUTFULL ? count_bits(r < n) : store_bits(out_words, r, on);
              });
    block_add(count, found);
}
