// The values of x over all slots; `every`: 0 for the one of all, else all bits.
struct Here {
    const T_B *vals;
    IDX every;
    DEVICE T_B operator()(IDX k) const { return load(vals + (k & every)); }
};

// Short rows: two a thread, two entries of each at a time, so that many loads are under way and no lane is idle. PLAIN:
// x is full and there is no mask.
template <bool PLAIN, class X>
DEVICE void short_rows(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const X &xvals,
                       const i64 *xwords, const i64 *mwords, i64 flags, const i64 *starts, const i64 *bounds, i64 row0,
                       const i64 *users, T_OUT *out_vals, i64 *out_words, i64 *count, i64 *stats, i64 p) {
    const bool full = (flags & XFULL) != 0;
    const PTR each = astride ? -1 : 0; // & each: the place of a value, 0 for an iso operand
    int found = 0;
    i64 entries = 0, probed = 0;
    EACH_PAIR(first, n) {
        PTR e[2], end[2];
        Z acc[2];
        bool have[2], more = false;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 r = first + 32 * i;
            const bool on = r < n && (PLAIN || lets(mwords, r, flags));
            e[i] = on ? load(indptr + r) : 0;
            end[i] = on ? load(indptr + r + 1) : 0;
            acc[i] = START;
            have[i] = PLAIN && e[i] < end[i];
            more |= e[i] < end[i];
            if (!PLAIN) probed += on;
        }
        while (more) {
            more = false;
            IDX k[2][2];
            T_A a[2][2];
            T_B x[2][2];
            u32 bits[2][2];
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    if (end[i] - e[i] <= j) continue;
                    k[i][j] = load(cols + e[i] + j);
                    if (READS_A && !ISO) a[i][j] = load(avals + ((e[i] + j) & each));
                }
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    if (end[i] - e[i] <= j) continue;
                    if (!PLAIN) bits[i][j] = bits_at(xwords, k[i][j], full);
                    if (READS_X && !ISO) x[i][j] = xvals(k[i][j]);
                }
#pragma unroll
            for (int i = 0; i < 2; i++) {
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    if (end[i] - e[i] <= j) continue;
                    if (!PLAIN) entries++;
                    if (!PLAIN && !(bits[i][j] >> (k[i][j] & 31) & 1)) continue;
                    have[i] = true;
                    if (ISO) continue;
                    const i64 inner = USES_INNER ? user_id(k[i][j], starts, bounds, p) : 0;
                    const Z t = term(a[i][j], x[i][j], inner, row_id(first + 32 * i, row0, users));
                    acc[i] = IS_ANY ? t : add(acc[i], t);
                }
                e[i] = end[i] - e[i] > 2 ? e[i] + 2 : end[i]; // never past the end: offsets may be close to 2**31
                if (have[i] && (ISO || is_terminal(acc[i]))) end[i] = e[i];
                more |= e[i] < end[i];
            }
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (!ISO && have[i]) out_vals[first + 32 * i] = to_out(acc[i]);
            found += store_bits(out_words, first + 32 * i, have[i]);
        }
    }
    block_add(count, found);
    if (!PLAIN && flags & TRACE) {
        block_add(stats, entries);
        block_add(stats + 1, probed);
    }
}
