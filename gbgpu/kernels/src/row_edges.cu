// As frontier_edges, by groups of rows.
KERNEL row_edges(i64 n, const i64 *count, const IDX *slots, const i64 *xwords, i64 flags, const PTR *indptr, i64 shift,
                 i64 *out) {
    const i64 total = flags & XLIST ? count[0] : n;
    i64 edges = 0;
    for (i64 q = thread_id(); q < whole_warps(total); q += thread_count()) {
        const bool on = q < total && (flags & (XLIST | XFULL) || bit(xwords, q));
        const u32 votes = __ballot_sync(ALL, on);
        if (!votes) continue;
        const i64 r = !on ? 0 : flags & XLIST ? slots[q] : q, group = r >> shift;
        const i64 length = on ? load(indptr + r + 1) - load(indptr + r) : 0;
        edges += length;
        const i64 first = __shfl_sync(ALL, group, __ffs(votes) - 1);
        if (!__all_sync(ALL, !on || group == first)) {
            if (length) atomicAdd((u64 *)out + 1 + group, (u64)length);
            continue;
        }
        i64 sum = length;
        for (int o = 16; o; o >>= 1)
            sum += __shfl_down_sync(ALL, sum, o);
        if (lane_id() == 0 && sum) atomicAdd((u64 *)out + 1 + first, (u64)sum);
    }
    block_add(out, edges);
}
