// The write rule on a dense C; a warp owns a half word.
KERNEL write(i64 n, T_A *cvals, i64 *cwords, const T_B *tvals, i64 tstride, const i64 *twords, const i64 *mwords,
             const i64 *rwords, i64 flags, i64 *count) {
    i64 found = 0;
    for (i64 r = thread_id(); r < whole_words(n); r += thread_count()) {
        bool stays = false;
        if (r < n) {
            const bool held = present(cwords, r, flags & CFULL), allowed = lets(mwords, r, flags);
            const bool target = allowed && (!(flags & REGION) || bit(rwords, r));
            stays = held && (allowed || !(flags & REPLACE)) && (HAS_OP || !target);
            if (target && present(twords, r, flags & TFULL)) {
                const T_B t = tvals[r * tstride];
                cvals[r] = HAS_OP && held ? both(cvals[r], t) : only_b(t);
                stays = true;
            }
        }
        found += flags & CFULL ? count_bits(r < n) : store_bits(cwords, r, stays);
    }
    block_add(count, found);
}
