KERNEL look_up(i64 n, const i64 *rows, const i64 *columns, const PTR *indptr, const IDX *cols, const T_A *avals,
               i64 astride, bool *out_found, T_A *out_vals) {
    for (i64 k = thread_id(); k < n; k += thread_count()) {
        const i64 r = load(rows + k), c = load(columns + k), last = load(indptr + r + 1);
        i64 low = load(indptr + r), high = last;
        while (low < high) {
            const i64 middle = (low + high) / 2;
            if (load(cols + middle) < c)
                low = middle + 1;
            else
                high = middle;
        }
        const bool hit = low < last && load(cols + low) == c;
        out_found[k] = hit;
        if (hit) out_vals[k] = load(avals + low * astride);
    }
}
