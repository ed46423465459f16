KERNEL ewise(i64 n, const T_A *avals, i64 astride, const i64 *awords, const T_B *bvals, i64 bstride, const i64 *bwords,
             i64 flags, i64 row0, DEFAULT_A adefault, DEFAULT_B bdefault, T_OUT *out_vals, i64 *out_words, i64 *count) {
    i64 found = 0;
    EACH_PAIR(first, n) {
        u32 abits[2], bbits[2];
        T_A a[2];
        T_B b[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 r = first + 32 * i;
            abits[i] = bits_at(awords, r, flags & AFULL), bbits[i] = bits_at(bwords, r, flags & BFULL);
            if (r < n) a[i] = avals[r * astride], b[i] = bvals[r * bstride];
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 r = first + 32 * i;
            const bool in_a = r < n && abits[i] >> lane_id() & 1, in_b = r < n && bbits[i] >> lane_id() & 1;
            const bool on = IS_UNION ? in_a || in_b : in_a && in_b;
            if (in_a && in_b) out_vals[r] = both(a[i], b[i], row0 + r, 0);
            else if (on) out_vals[r] = in_a ? only_a(a[i], bdefault, row0 + r, 0) : only_b(b[i], adefault, row0 + r, 0);
            found += flags & OUTFULL ? count_bits(r < n) : store_bits(out_words, r, on);
        }
    }
    block_add(count, found);
}
