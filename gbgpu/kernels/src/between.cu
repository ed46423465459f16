KERNEL between(const i64 *count, const IDX *slots, const T_B *xvals, i64 xstride, const i64 *cuts, IDX *out_slots,
               T_B *out_vals, i64 *out_count) {
    const i64 total = count[0], low = cuts[0], high = cuts[1];
    for (i64 q = thread_id(); q < whole_warps(total); q += thread_count()) {
        const i64 r = q < total ? slots[q] : -1;
        const bool on = low <= r && r < high;
        const i64 at = append(on, out_count);
        if (!on) continue;
        out_slots[at] = (IDX)r;
        if (xstride) out_vals[at] = xvals[q];
    }
}
