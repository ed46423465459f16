// Ascending within each warp only. An iso operand stays iso: its value is not copied.
KERNEL compact(i64 n, const T_B *xvals, i64 xstride, const i64 *xwords, i64 flags, IDX *out_slots, T_B *out_vals,
               i64 *out_count) {
    for (i64 r = thread_id(); r < whole_warps(n); r += thread_count()) {
        const bool on = r < n && present(xwords, r, flags & XFULL);
        const i64 at = append(on, out_count);
        if (!on) continue;
        out_slots[at] = (IDX)r;
        if (xstride) out_vals[at] = xvals[r];
    }
}
