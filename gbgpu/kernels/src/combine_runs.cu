KERNEL combine_runs(i64 n, const i64 *starts, const i64 *order, const T_B *vals, T_B *out_vals, i64 total) {
    for (i64 q = thread_id(); q < n; q += thread_count()) {
        const i64 end = q + 1 < n ? load(starts + q + 1) : total;
        i64 e = load(starts + q);
        T_B acc = load(vals + load(order + e));
        for (e++; e < end; e++)
            acc = both(acc, load(vals + load(order + e)));
        out_vals[q] = acc;
    }
}
