#include "atomics.cuh"
#include "relax.cuh"

// Relaxation of x @ A to its fixpoint, in one kernel that stays. A warp is a worker: it takes vertices of the window from
// the list `near`, extends their entries, and goes on with those that it improves itself, as long as these lie in the
// window; nobody waits for anybody. Those beyond the limit go to the list `far`. When all have run dry they meet once,
// and what is left of `far` is split by the next limit. So blocks meet as often as there are windows, not as there are
// hops; and who improves a vertex progresss on it.
//
// Source: Chen, Brock, Porumbescu, Buluc, Yelick, Owens, "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP
// 2022, workers with queues of their own; Ben-Nun, Sutton, Pai, Pingali, "Groute", PPoPP 2017, soft priorities.
//
// Lists may hold a vertex more than once. One in `far` counts if its value is the one with which it was put there: else
// it was extended, or put there, with a better one. A list that is full ends the kernel (CROWDED); the caller begins
// again with all vertices that have a value.

const u32 PLACES = 128;      // of a worker's own queue
const u32 LOOK = 64;         // turns of a worker between two looks at the clock
const u32 HUGE = 1 << 26; // entries from which on a worker takes a vertex by itself: sums of 32 stay below 2^32

enum { EXTEND = 1, SPLIT, STOP }; // what all do next

KERNEL relax(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const i64 *mwords, i64 flags,
             i64 most, i64 windows, i64 wide, Z *best, i64 *bits, IDX *near, IDX *far, Z *queued, Z *limits,
             Work *progress, i64 room, Meeting *meeting) {
    __shared__ IDX places[8][PLACES];
    __shared__ u32 before[8][32];
    __shared__ i64 first[8][32];
    __shared__ Z values[8][32];
    const u32 lane = lane_id(), own = threadIdx.x >> 5;
    const i64 workers = warp_count();
    IDX *queue = places[own];
    const Bits64 until = now() + most;
    const i64 begun = progress->windows; // before anyone changes it: they meet first
    Bits64 meetings = 0;
    u64 extended = 0, edges = 0, improved = 0;

    // What comes next, by one thread while all others wait.
    auto next = [&]() -> unsigned {
        volatile Work *w = progress;
        volatile Z *l = limits;
        if (w->crowded) return w->ended = CROWDED, STOP;
        if (w->spilled) {
            w->near = w->spilled;
            w->spilled = 0;
            w->side ^= 1;
        }
        w->taken = 0;
        const bool late = now() > until;
        if (w->near) {
            if (wide && w->near > wide) return w->ended = WIDE, STOP;
            return late ? STOP : EXTEND;
        }
        if (!w->far) return w->ended = SETTLED, STOP;
        if (late || (windows && w->windows - begun >= windows)) return STOP;
        const Z low = l[2], last = l[0];
        const Z from = w->windows && !beyond(low, last) ? last : low; // some that are not in use made it too low
        Z limit = START;
        if (flags & WINDOWED) {
            limit = from + l[1];
            if (beyond(from, limit)) limit = START; // it wrapped
        }
        l[0] = limit;
        l[2] = START;
        w->windows = w->windows + 1;
        w->kept = 0;
        return SPLIT;
    };

    unsigned told = meet(meeting, meetings, next);
    while (told == EXTEND || told == SPLIT) {
        const i64 side = look(&progress->side), far_side = look(&progress->far_side);
        const Z limit = look_at(limits);
        IDX *const far_now = far + far_side * room;
        Z *const queued_now = queued + far_side * room;
        IDX *const other = near + (side ^ 1) * room;
        Z lowest = START;
        if (told == SPLIT) {
            const i64 count = look(&progress->far);
            IDX *const far_next = far + (far_side ^ 1) * room;
            Z *const queued_next = queued + (far_side ^ 1) * room;
            for (i64 i = thread_id(), stop = whole_warps(count); i < stop; i += thread_count()) {
                bool live = i < count;
                IDX v = 0;
                Z value = START;
                if (live) {
                    v = far_now[i];
                    value = queued_now[i];
                    live = bits_of(look_at(best + v)) == bits_of(value);
                }
                const bool later = live && beyond(value, limit);
                put(live && !later, v, other, room, progress, &progress->spilled);
                const i64 at = append(later, &progress->kept);
                if (later) { // no more than there were
                    far_next[at] = v;
                    queued_next[at] = value;
                    lowest = add(lowest, value);
                }
            }
            settle(limits + 2, lowest);
            told = meet(meeting, meetings, [&]() -> unsigned {
                volatile Work *w = progress;
                w->far = w->kept;
                w->far_side ^= 1;
                return next();
            });
            continue;
        }
        const IDX *const mine = near + side * room;
        const i64 count = look(&progress->near);
        const i64 share = count / (workers * 2);
        const u32 chunk = share < 1 ? 1 : share > 32 ? 32 : (u32)share;
        u32 head = 0, size = 0;
        bool late = false;
        for (u32 turn = 1;; turn++) {
            if (turn % LOOK == 0) late = __shfl_sync(ALL, now() > until, 0);
            if (!size) {
                u64 at = 0;
                if (!lane) at = atomicAdd((u64 *)&progress->taken, (u64)chunk);
                at = __shfl_sync(ALL, at, 0);
                if ((i64)at >= count) break;
                size = (u32)(count - (i64)at < chunk ? count - at : chunk);
                head = 0;
                if (lane < size) queue[lane] = mine[at + lane];
                __syncwarp();
            }
            u32 group = size < 32 ? size : 32;
            const IDX v = lane < group ? queue[(head + lane) % PLACES] : 0;
            if (late) { // others, or a later call, go on
                put(lane < group, v, other, room, progress, &progress->spilled);
                head = (head + group) % PLACES;
                size -= group;
                continue;
            }
            i64 begin = 0, degree = 0;
            Z value = START;
            if (lane < group) {
                begin = load(indptr + v);
                degree = load(indptr + v + 1) - begin;
                value = look_at(best + v);
            }
            if (__any_sync(ALL, degree > HUGE)) {
                group = 1;
                if (lane) degree = 0;
            }
            head = (head + group) % PLACES;
            size -= group;
            extended += !lane ? group : 0;
            u32 upto = (u32)degree;
            for (int o = 1; o < 32; o <<= 1) {
                const u32 below = __shfl_up_sync(ALL, upto, o);
                if (lane >= o) upto += below;
            }
            const u32 total = __shfl_sync(ALL, upto, 31);
            edges += !lane ? total : 0;
            before[own][lane] = upto - (u32)degree;
            first[own][lane] = begin;
            values[own][lane] = value;
            __syncwarp();
            for (u32 base = 0; base < total; base += 32) {
                const u32 t = base + lane;
                bool better = false;
                IDX u = 0;
                Z made = START;
                if (t < total) {
                    u32 owner = 0; // the last lane with before <= t
                    for (u32 step = 16; step; step >>= 1)
                        if (before[own][owner + step] <= t) owner += step;
                    const i64 e = first[own][owner] + (t - before[own][owner]);
                    u = load(cols + e);
                    if (lets(mwords, u, flags)) {
                        const Z v = term(READS_A ? load(avals + e * astride) : T_A(), values[own][owner], 0, 0);
                        better = improve(best + u, v, made);
                        if (!better && is_start(v)) better = is_start(look_at(best + u)) && mark(bits, u);
                    }
                }
                improved += better;
                const bool later = better && beyond(made, limit);
                const u32 votes = __ballot_sync(ALL, better && !later);
                if (votes) {
                    const u32 many = __popc(votes), place = __popc(votes & lanes_below()), fit = PLACES - size;
                    const bool stays = better && !later && place < fit;
                    if (stays) {
                        queue[(head + size + place) % PLACES] = u;
                        asm volatile("prefetch.global.L1 [%0];" ::"l"(indptr + u));
                    }
                    size += many < fit ? many : fit;
                    if (many > fit) put(better && !later && place >= fit, u, other, room, progress, &progress->spilled);
                }
                if (__any_sync(ALL, later)) {
                    const i64 at = put(later, u, far_now, room, progress, &progress->far);
                    if (later && at < room) queued_now[at] = made;
                    if (later) lowest = add(lowest, made);
                }
                __syncwarp();
            }
            __syncwarp();
        }
        settle(limits + 2, lowest);
        told = meet(meeting, meetings, [&]() -> unsigned {
            *(volatile i64 *)&progress->near = 0;
            return next();
        });
    }
    block_add(&progress->extended, extended);
    block_add(&progress->edges, edges);
    block_add(&progress->improved, improved);
    if (told == LOST && thread_id() == 0) progress->ended = -1;
}
