KERNEL mask_list(const i64 *count, const IDX *slots, const T_B *xvals, i64 xstride, const i64 *mwords, i64 flags,
                 IDX *out_slots, T_B *out_vals, i64 *out_count) {
    const i64 total = count[0];
    for (i64 q = thread_id(); q < whole_warps(total); q += thread_count()) {
        const i64 r = q < total ? slots[q] : 0;
        const bool on = q < total && lets(mwords, r, flags | MASKED);
        const i64 at = append(on, out_count);
        if (!on) continue;
        out_slots[at] = (IDX)r;
        out_vals[at] = xvals[q * xstride];
    }
}
