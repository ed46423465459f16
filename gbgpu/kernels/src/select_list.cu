KERNEL select_list(const i64 *count, const IDX *slots, const T_B *xvals, i64 xstride, i64 row0, const i64 *users,
                   THUNK thunk, IDX *out_slots, T_B *out_vals, i64 *out_count, const THUNK *late) {
    const i64 total = count[0];
    if (late) thunk = *late;
    for (i64 q = thread_id(); q < whole_warps(total); q += thread_count()) {
        const i64 r = q < total ? slots[q] : 0;
        const T_B x = q < total ? xvals[q * xstride] : T_B();
        const bool on = q < total && of_entry(x, row_id(r, row0, users), 0, thunk);
        const i64 at = append(on, out_count);
        if (!on) continue;
        out_slots[at] = (IDX)r;
        out_vals[at] = x;
    }
}
