KERNEL select(i64 n, const T_B *xvals, i64 xstride, const i64 *xwords, i64 flags, i64 row0, const i64 *users,
              THUNK thunk, i64 *out_words, i64 *count, const THUNK *late) {
    i64 found = 0;
    if (late) thunk = *late;
    EACH_PAIR(first, n) {
        u32 bits[2];
        T_B x[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 r = first + 32 * i;
            bits[i] = bits_at(xwords, r, flags & XFULL);
            if (READS_X && r < n) x[i] = xvals[r * xstride];
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 r = first + 32 * i;
            const bool on = r < n && bits[i] >> lane_id() & 1;
            found += store_bits(out_words, r, on && of_entry(x[i], row_id(r, row0, users), 0, thunk));
        }
    }
    block_add(count, found);
}
