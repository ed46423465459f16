// The write rule on a dense C.
KERNEL write(i64 n, T_A *cvals, i64 *cwords, const T_B *tvals, i64 tstride, const i64 *twords, const i64 *mwords,
             const i64 *rwords, i64 flags, i64 *count) {
    i64 found = 0;
    EACH_PAIR(first, n) {
        bool held[2], stays[2], taken[2];
        T_A c[2];
        T_B t[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 r = first + 32 * i;
            stays[i] = taken[i] = false;
            if (r >= n) continue;
            held[i] = present(cwords, r, flags & CFULL);
            const bool allowed = lets(mwords, r, flags), target = allowed && (!(flags & REGION) || bit(rwords, r));
            taken[i] = target && present(twords, r, flags & TFULL);
            stays[i] = taken[i] || held[i] && (allowed || !(flags & REPLACE)) && (HAS_OP || !target);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (!taken[i]) continue;
            t[i] = tvals[(first + 32 * i) * tstride];
            if (HAS_OP && held[i]) c[i] = cvals[first + 32 * i];
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 r = first + 32 * i;
            if (taken[i]) cvals[r] = HAS_OP && held[i] ? both(c[i], t[i]) : only_b(t[i]);
            found += flags & CFULL ? count_bits(r < n) : store_bits(cwords, r, stays[i]);
        }
    }
    block_add(count, found);
}
