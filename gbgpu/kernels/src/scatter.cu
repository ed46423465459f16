KERNEL scatter(const i64 *count, const IDX *slots, const T_B *xvals, i64 xstride, T_B *out_vals, i64 *out_words) {
    const i64 total = count[0];
    for (i64 q = thread_id(); q < total; q += thread_count()) {
        const i64 r = slots[q];
        mark(out_words, r);
        out_vals[r] = xvals[q * xstride];
    }
}
