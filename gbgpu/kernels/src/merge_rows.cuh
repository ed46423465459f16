// Union of two rows with ascending columns, in parallel: an entry's place follows from its own index, its rank in the
// other row and the number of columns in both before it.

// Calls emit(place, entry of a or -1, entry of b or -1) for each entry that `keep` lets survive; returns how many there
// are.
template <bool emits, class Group, class Emit> DEVICE i64 merge_row(Group group, i64 r, const PTR *aptr,
                                                                    const IDX *acols, const PTR *bptr, const IDX *bcols,
                                                                    i64 keep, Emit emit) {
    const i64 a0 = load(aptr + r), a1 = load(aptr + r + 1), b0 = load(bptr + r), b1 = load(bptr + r + 1);
    const i64 in_a = (keep & A_ONLY) != 0, in_b = (keep & B_ONLY) != 0, in_both = (keep & BOTH) != 0;
    i64 matched = 0, seen = 0;
    for (i64 base = a0; base < a1; base += group.size) {
        const i64 e = base + group.rank();
        const bool on = e < a1;
        i64 f = b0;
        bool match = false;
        if (on) {
            const i64 col = load(acols + e);
            f = lower_bound(bcols, b0, b1, col);
            match = f < b1 && load(bcols + f) == col;
        }
        const i64 before = group.place(match, matched);
        if (emits && on && (match ? in_both : in_a))
            emit(in_a * (e - a0 - before) + in_both * before + in_b * (f - b0 - before), e, match ? f : -1);
    }
    if (emits && in_b)
        for (i64 base = b0; base < b1; base += group.size) {
            const i64 f = base + group.rank();
            const bool on = f < b1;
            i64 e = a0;
            bool match = false;
            if (on) {
                const i64 col = load(bcols + f);
                e = lower_bound(acols, a0, a1, col);
                match = e < a1 && load(acols + e) == col;
            }
            const i64 before = group.place(match, seen);
            if (on && !match) emit(in_b * (f - b0 - before) + in_both * before + in_a * (e - a0 - before), -1, f);
        }
    return in_a * (a1 - a0 - matched) + in_b * (b1 - b0 - matched) + in_both * matched;
}
