KERNEL frontier_edges(i64 n, const i64 *count, const IDX *slots, const i64 *xwords, i64 flags, const PTR *indptr,
                      i64 *out) {
    const i64 total = flags & XLIST ? count[0] : n;
    i64 edges = 0;
    for (i64 q = thread_id(); q < total; q += thread_count()) {
        if (!(flags & (XLIST | XFULL)) && !bit(xwords, q)) continue;
        const i64 r = flags & XLIST ? slots[q] : q;
        edges += load(indptr + r + 1) - load(indptr + r);
    }
    block_add(out, edges);
}
