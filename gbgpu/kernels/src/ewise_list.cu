KERNEL ewise_list(const i64 *count, const IDX *slots, const T_A *avals, i64 astride, const T_B *bvals, i64 bstride,
                  const i64 *bwords, i64 flags, i64 row0, const i64 *users, IDX *out_slots, T_OUT *out_vals,
                  i64 *out_count) {
    const i64 total = count[0];
    for (i64 q = thread_id(); q < whole_warps(total); q += thread_count()) {
        const i64 r = q < total ? slots[q] : 0;
        const bool on = q < total && present(bwords, r, flags & BFULL);
        const i64 at = append(on, out_count);
        if (!on) continue;
        out_slots[at] = (IDX)r;
        out_vals[at] = both(avals[q * astride], bvals[r * bstride], row_id(r, row0, users), 0);
    }
}
