KERNEL ewise(i64 n, const T_A *avals, i64 astride, const i64 *awords, const T_B *bvals, i64 bstride, const i64 *bwords,
             i64 flags, i64 row0, DEFAULT_A adefault, DEFAULT_B bdefault, T_OUT *out_vals, i64 *out_words, i64 *count) {
    i64 found = 0;
    for (i64 r = thread_id(); r < whole_words(n); r += thread_count()) {
        const bool in_a = r < n && present(awords, r, flags & AFULL), in_b = r < n && present(bwords, r, flags & BFULL);
        const bool on = IS_UNION ? in_a || in_b : in_a && in_b;
        if (in_a && in_b) out_vals[r] = both(avals[r * astride], bvals[r * bstride], row0 + r, 0);
        else if (on) out_vals[r] = in_a ? only_a(avals[r * astride], bdefault, row0 + r, 0) : only_b(bvals[r * bstride], adefault, row0 + r, 0);
        found += flags & OUTFULL ? count_bits(r < n) : store_bits(out_words, r, on);
    }
    block_add(count, found);
}
