// Row by row of two vectors: both, only_a, only_b, and (IS_CHAIN) what `then` makes of that and c, where c has an entry
// too. `take(r, on, value)` is called by whole warps, of up to 63 rows after the last one as well.
template <class Take>
DEVICE void each_pair(i64 n, const T_A *avals, i64 astride, const i64 *awords, const T_B *bvals, i64 bstride,
                      const i64 *bwords, const T_C *cvals, i64 cstride, const i64 *cwords, i64 flags, i64 row0,
                      const i64 *users, DEFAULT_A adefault, DEFAULT_B bdefault, const DEFAULT_A *alate,
                      const DEFAULT_B *blate, Take take) {
    if (alate) adefault = *alate;
    if (blate) bdefault = *blate;
    EACH_PAIR(first, n) {
        u32 abits[2], bbits[2], cbits[2];
        T_A a[2];
        T_B b[2];
        T_C c[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 r = first + 32 * i;
            abits[i] = bits_at(awords, r, flags & AFULL), bbits[i] = bits_at(bwords, r, flags & BFULL);
            if (IS_CHAIN) cbits[i] = bits_at(cwords, r, flags & CFULL);
            if (r < n) a[i] = avals[r * astride], b[i] = bvals[r * bstride];
            if (IS_CHAIN && r < n) c[i] = cvals[r * cstride];
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 r = first + 32 * i;
            const bool in_c = r < n && (!IS_CHAIN || cbits[i] >> lane_id() & 1);
            const bool in_a = in_c && abits[i] >> lane_id() & 1, in_b = in_c && bbits[i] >> lane_id() & 1;
            const bool on = IS_UNION ? in_a || in_b : in_a && in_b;
            T_OUT value = T_OUT();
            if (on)
                value = then(in_a && in_b ? both(a[i], b[i], row_id(r, row0, users), 0)
                             : in_a       ? only_a(a[i], bdefault, row_id(r, row0, users), 0)
                                          : only_b(b[i], adefault, row_id(r, row0, users), 0),
                             c[i]);
            take(r, on, value);
        }
    }
}
