#include "atomics.cuh"
#include "arrive.cuh"

// Arrivals of another device at the owner, or of an assignment; slot -1 is none.
KERNEL combine(const i64 *count, const IDX *slots, const Z *vals, const i64 *mwords, i64 flags, Z *acc_vals,
               i64 *acc_words, IDX *touched, i64 *touched_count) {
    const i64 total = count[0];
    i64 found = 0;
    for (i64 q = thread_id(); q < whole_warps(total); q += thread_count()) {
        bool on = q < total;
        const i64 slot = on ? slots[q] : 0;
        on = on && slot >= 0 && lets(mwords, slot, flags);
        const u32 seen = AHEAD && on ? marks_at(acc_words, slot) : 0;
        arrive(on, slot, on && !ISO ? vals[q] : START, seen, acc_vals, acc_words, touched, touched_count, 0, found);
    }
}
