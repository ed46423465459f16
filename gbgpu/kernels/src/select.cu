KERNEL select(i64 n, const T_B *xvals, i64 xstride, const i64 *xwords, i64 flags, i64 row0, THUNK thunk, i64 *out_words,
              i64 *count) {
    i64 found = 0;
    for (i64 r = thread_id(); r < whole_words(n); r += thread_count()) {
        const bool on = r < n && present(xwords, r, flags & XFULL);
        found += store_bits(out_words, r, on && of_entry(READS_X ? xvals[r * xstride] : T_B(), row0 + r, 0, thunk));
    }
    block_add(count, found);
}
