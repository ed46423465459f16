// The rows of a list lose their entries; count is C's own. A row that the list has twice is counted once.
KERNEL unwrite(const i64 *tcount, const IDX *tslots, i64 *cwords, i64 *count) {
    const i64 total = tcount[0];
    i64 lost = 0;
    for (i64 q = thread_id(); q < total; q += thread_count()) {
        const IDX r = tslots[q];
        const u32 b = 1u << (r & 31);
        lost += (atomicAnd((u32 *)cwords + (r >> 5), ~b) & b) != 0;
    }
    block_add(count, -lost);
}
