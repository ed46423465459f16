// A term v arrives at a slot of a workspace that passed the mask; the first arrival also appends the slot to `touched`,
// or (DENSE) is counted in `found`. All lanes of a warp call it together. `seen`: marks_at of the slot, where that is
// read ahead.
DEVICE void arrive(bool on, i64 slot, Z v, u32 seen, Z *acc_vals, i64 *acc_words, IDX *touched, i64 *touched_count, i64 flags,
                   i64 &found) {
    const bool first = on && mark(acc_words, slot, AHEAD ? seen : marks_at(acc_words, slot));
    if (!ISO && on) {
        if (!IS_ANY) accumulate(acc_vals + slot, v);
        else if (first) acc_vals[slot] = v;
    }
    if (flags & DENSE) {
        found += first;
        return;
    }
    const i64 at = append(first, touched_count);
    if (first) touched[at] = (IDX)slot;
}
