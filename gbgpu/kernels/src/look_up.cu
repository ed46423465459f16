KERNEL look_up(i64 n, const i64 *rows, const i64 *columns, const PTR *indptr, const IDX *cols, const T_A *avals,
               i64 astride, bool *out_found, T_A *out_vals) {
    for (i64 k = thread_id(); k < n; k += thread_count()) {
        const i64 r = load(rows + k), c = load(columns + k), last = load(indptr + r + 1);
        const i64 e = lower_bound(cols, load(indptr + r), last, c);
        const bool hit = e < last && load(cols + e) == c;
        out_found[k] = hit;
        if (hit) out_vals[k] = load(avals + e * astride);
    }
}
