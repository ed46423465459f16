#include "atomics.cuh"
#include "relax.cuh"

// No atomics on values: a list has a vertex once, and each list is a launch of its own.
KERNEL relax_receive(i64 n, const i64 *count, const IDX *slots, const Z *vals, Z *best, i64 *bits, IDX *far, Z *queued,
                     Z *limits, Work *progress, i64 room) {
    IDX *const far_now = far + progress->far_side * room;
    Z *const queued_now = queued + progress->far_side * room;
    Z lowest = START;
    for (i64 q = thread_id(), stop = whole_warps(count[0]); q < stop; q += thread_count()) {
        bool found = q < count[0];
        IDX v = 0;
        Z value = START;
        if (found) {
            v = slots[q];
            const Z came = vals[q], old = best[v];
            value = add(old, came); // of bits, more than what came
            if (is_start(came)) found = is_start(old) && mark(bits, v);
            else found = improves(came, old);
            if (found) best[v] = value;
        }
        const i64 at = append(found, &progress->far);
        if (found && at < room) {
            far_now[at] = v;
            queued_now[at] = value;
        }
        if (found && at >= room) *(volatile i64 *)&progress->crowded = 1;
        if (found) lowest = add(lowest, value);
    }
    keep_best(limits + 2, lowest);
}
