KERNEL gather(i64 n, const i64 *index, const T_B *xvals, i64 xstride, const i64 *xwords, i64 flags, T_B *out_vals,
              i64 *out_words, i64 *count) {
    i64 found = 0;
    for (i64 r = thread_id(); r < whole_words(n); r += thread_count()) {
        const i64 slot = r < n ? load(index + r) : -1;
        const bool on = slot >= 0 && present(xwords, slot, flags & XFULL);
        if (on) out_vals[r] = xvals[slot * xstride];
        found += flags & OUTFULL ? count_bits(on) : store_bits(out_words, r, on);
    }
    block_add(count, found);
}
