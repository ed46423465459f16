// The write rule on rows `first` and `first + 32`, of which each lane has its own; returns how many entries they leave,
// on the first lane.
DEVICE i64 written(i64 first, i64 n, T_A *cvals, i64 *cwords, const T_B *tvals, i64 tstride, const i64 *twords,
                   const i64 *mwords, const i64 *rwords, i64 flags) {
    bool held[2], stays[2], taken[2];
    T_A c[2];
    T_B t[2];
    i64 found = 0;
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
        if (ISO || !taken[i]) continue;
        t[i] = tvals[(first + 32 * i) * tstride];
        if (HAS_OP && held[i]) c[i] = cvals[first + 32 * i];
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const i64 r = first + 32 * i;
        if (!ISO && taken[i]) cvals[r] = HAS_OP && held[i] ? both(c[i], t[i]) : only_b(t[i]);
        found += flags & CFULL ? count_bits(r < n) : store_bits(cwords, r, stays[i]);
    }
    return found;
}

// The write rule on a dense C. A warp looks at several words of the mask at once: where that lets no row through, C
// stays as it is.
KERNEL write(i64 n, T_A *cvals, i64 *cwords, const T_B *tvals, i64 tstride, const i64 *twords, const i64 *mwords,
             const i64 *rwords, i64 flags, i64 *count) {
    const bool some = (flags & (MASKED | COMPLEMENT | REPLACE)) == MASKED;
    const i64 words = whole_words(n) >> 6, share = (words - 1) / warp_count() + 1, each = share < 32 ? share : 32;
    i64 found = 0;
    for (i64 begin = warp_id() * each; begin < words; begin += warp_count() * each) {
        const i64 mine = begin + lane_id();
        bool on = lane_id() < each && mine < words;
        if (some && on && !mwords[mine]) {
            const i64 rows = n - 64 * mine;
            found += flags & CFULL ? (rows < 64 ? rows : 64) : __popcll(cwords[mine]);
            on = false;
        }
        for (u32 left = __ballot_sync(ALL, on); left; left &= left - 1)
            found += written(64 * (begin + __ffs(left) - 1) + lane_id(), n, cvals, cwords, tvals, tstride, twords,
                             mwords, rwords, flags);
    }
    block_add(count, found);
}
