// Entries of matrices, each with its row: the last one that begins at or before it (empty rows are passed over).

// body(entry, row) for all, and for some without a row (-1) up to a multiple of 64. A warp takes up to 1024 in turn, 32
// at a time. Rows are looked for only if they are `wanted`, else they are 0.
template <class Body> DEVICE void each_entry(i64 n, const PTR *indptr, bool wanted, Body body) {
    const i64 total = load(indptr + n), whole = (total + 63) & ~63LL;
    const i64 share = total / warp_count() + 31 & ~31LL, each = share < 32 ? 32 : share > 1024 ? 1024 : share;
    for (i64 first = warp_id() * each; first < whole; first += warp_count() * each) {
        const i64 stop = first + each < whole ? first + each : whole, last = stop < total ? stop : total;
        i64 row = wanted ? last_upto(indptr, 0, n, first) : 0;
        const i64 high = wanted ? last_upto(indptr, row, n, last - 1) + 1 : 0;
        for (i64 e = first + lane_id(); e < stop; e += 32) {
            if (wanted && e < total) row = last_upto(indptr, row, high, e);
            body(e, e < total ? row : -1);
        }
    }
}
