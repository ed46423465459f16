// Empties a workspace into one list for each of the p owners, and leaves it as it was before the push. PARTIAL: its values
// stay.
KERNEL drain(const i64 *touched_count, const IDX *touched, T_OUT *acc_vals, i64 *acc_words, T_OUT start,
             const i64 *starts, i64 p, IDX *out_slots, T_OUT *out_vals, i64 *out_counts) {
    const i64 total = touched_count[0];
    if (p == 1) { // all is one owner's
        for (i64 q = thread_id(); q < total; q += thread_count()) {
            const i64 slot = touched[q];
            out_slots[q] = (IDX)slot;
            ((u32 *)acc_words)[slot >> 5] = 0; // every set bit of the word is drained
            if (ISO) continue;
            out_vals[q] = acc_vals[slot];
            acc_vals[slot] = start;
        }
        return;
    }
    for (i64 q = thread_id(); q < whole_warps(total); q += thread_count()) {
        const bool on = q < total;
        const i64 slot = on ? touched[q] : 0;
        const int owner = on ? (int)block_of(slot, starts, p) : -1;
        const u32 peers = __match_any_sync(ALL, owner);
        const int leader = __ffs(peers) - 1;
        u64 base = 0;
        if (on && lane_id() == leader) base = atomicAdd((u64 *)out_counts + owner, (u64)__popc(peers));
        base = __shfl_sync(ALL, base, leader);
        if (!on) continue;
        const i64 at = load(starts + owner) + (i64)base + __popc(peers & lanes_below());
        out_slots[at] = (IDX)(slot - load(starts + owner));
        ((u32 *)acc_words)[slot >> 5] = 0;
        if (ISO) continue;
        out_vals[at] = acc_vals[slot];
        if (!PARTIAL) acc_vals[slot] = start;
    }
}
