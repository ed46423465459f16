KERNEL list_words(const i64 *count, const IDX *slots, const T_B *xvals, i64 xstride, i64 flags, i64 *out_words) {
    const i64 total = count[0];
    for (i64 q = thread_id(); q < total; q += thread_count())
        if (!(flags & VALUED) || truth(xvals[q * xstride])) mark(out_words, slots[q]);
}
