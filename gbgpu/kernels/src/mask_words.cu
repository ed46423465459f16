KERNEL mask_words(i64 n, const T_B *xvals, i64 xstride, const i64 *xwords, i64 flags, i64 *out_words) {
    for (i64 r = thread_id(); r < whole_words(n); r += thread_count())
        store_bits(out_words, r, r < n && present(xwords, r, flags & XFULL) && truth(xvals[r * xstride]));
}
