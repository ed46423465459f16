// The write rule for a list T: nothing is deleted.
KERNEL write_list(const i64 *tcount, const IDX *tslots, const T_B *tvals, i64 tstride, const i64 *mwords, i64 flags,
                  T_A *cvals, i64 *cwords, i64 *count) {
    const i64 total = tcount[0];
    i64 added = 0;
    for (i64 q = thread_id(); q < total; q += thread_count()) {
        const i64 r = tslots[q];
        if (!lets(mwords, r, flags)) continue;
        const bool held = flags & CFULL || !mark(cwords, r);
        const T_B t = tvals[q * tstride];
        cvals[r] = HAS_OP && held ? both(cvals[r], t) : only_b(t);
        added += !held;
    }
    block_add(count, added);
}
