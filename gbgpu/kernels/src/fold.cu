#include "pairs.cuh"
#include "sum.cuh"

KERNEL fold(i64 n, const T_A *avals, i64 astride, const i64 *awords, const T_B *bvals, i64 bstride, const i64 *bwords,
            const T_C *cvals, i64 cstride, const i64 *cwords, i64 flags, i64 row0, const i64 *users, DEFAULT_A adefault,
            DEFAULT_B bdefault, Z *out_vals, i64 *out_words, const DEFAULT_A *alate, const DEFAULT_B *blate,
            u64 *scratch) {
    Z acc = START;
    bool have = false;
    each_pair(n, avals, astride, awords, bvals, bstride, bwords, cvals, cstride, cwords, flags, row0, users, adefault,
              bdefault, alate, blate, [&](i64, bool on, T_OUT value) {
                  if (on) join(acc, have, from_out(value), true);
              });
    sum_blocks(acc, have, out_vals, out_words, scratch);
}
