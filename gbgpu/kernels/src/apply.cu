KERNEL apply(i64 n, const i64 *count, const IDX *slots, const T_B *xvals, i64 xstride, THUNK thunk, i64 flags, i64 row0,
             const i64 *users, T_OUT *out_vals, const THUNK *late) {
    const i64 total = flags & XLIST ? count[0] : n;
    if (late) thunk = *late;
    EACH_PAIR(first, total) {
        T_B x[2];
        i64 row[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 q = first + 32 * i;
            if (q >= total) continue;
            row[i] = USES_ROW && flags & XLIST ? slots[q] : q;
            if (READS_X) x[i] = xvals[q * xstride];
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (first + 32 * i < total)
                out_vals[first + 32 * i] = to_out(of_entry(x[i], row_id(row[i], row0, users), 0, thunk));
    }
}
