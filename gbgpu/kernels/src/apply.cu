KERNEL apply(i64 n, const i64 *count, const IDX *slots, const T_B *xvals, i64 xstride, THUNK thunk, i64 flags, i64 row0,
             T_OUT *out_vals) {
    const i64 total = flags & XLIST ? count[0] : n;
    for (i64 q = thread_id(); q < total; q += thread_count()) {
        const i64 r = USES_ROW && flags & XLIST ? slots[q] : q;
        out_vals[q] = to_out(of_entry(READS_X ? xvals[q * xstride] : T_B(), row0 + r, 0, thunk));
    }
}
