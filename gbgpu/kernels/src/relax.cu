#include "atomics.cuh"
#include "relax.cuh"
#include "worker.cuh"

// Relaxation of x @ A to its fixpoint, in one kernel that stays. A worker takes vertices of the window from the list
// `near`, extends their entries, and goes on with those that it improves itself, as long as these lie in the window;
// nobody waits for anybody. Those beyond the limit go to the list `far`. When all have run dry they meet once, and what is
// left of `far` is split by the next limit. So blocks meet as often as there are windows, not as there are hops; and who
// improves a vertex works on it. A warp with many gives some to one of its block that has none.
//
// Source: Chen, Brock, Porumbescu, Buluc, Yelick, Owens, "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP
// 2022, workers with queues of their own; Ben-Nun, Sutton, Pai, Pingali, "Groute", PPoPP 2017, soft priorities.
//
// Lists may hold a vertex more than once. One in `far` counts if its value is the one with which it was put there: else
// it was extended, or put there, with a better one. A list that is full ends the kernel (CROWDED); the caller begins
// again with all vertices that have a value.

const u32 PLACES = 1024 / WORKERS;   // of a worker's own queue
const u32 MANY = 8;                  // a warp that has more gives half away; 2 to 24 in bench/results/fixpoint-gpu.md
const u32 LOOK = 1024;               // turns of a worker between two looks at the clock
const u32 HUGE = 0xffffffffu / TEAM; // entries beyond which a worker takes a vertex by itself: the sum has 32 bits
const u32 PATIENT = 1 << 26;         // looks of a warp that rests, some seconds; then as if a list were full
const u32 FEW = 4; // GROWS: after a window of fewer vertices than a quarter of the workers, one twice as wide

enum { EXTEND = 1, SPLIT, STOP }; // what all do next

KERNEL relax(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const i64 *mwords, i64 flags,
             i64 most, i64 windows, i64 wide, i64 takes, i64 first, Z *best, i64 *bits, IDX *near, IDX *far, Z *queued,
             Z *limits, i64 *acc_words, IDX *touched, i64 *touched_count, Work *progress, i64 room, Meeting *meeting) {
    Z *const here = SPREAD ? best + first : best; // of the rows of A
    __shared__ IDX places[WORKERS][PLACES]; // the queues: vertices, and their rows
    __shared__ PTR begins[WORKERS][PLACES];
    __shared__ u32 degrees[WORKERS][PLACES];
    __shared__ Rows rows[WORKERS];       // of a turn
    __shared__ u32 resting[2], given[8]; // warps that have nothing to do, and how many vertices each has been given
    __shared__ Bits<IDX>::type gifts[8][32];
    const u32 lane = threadIdx.x % TEAM, own = threadIdx.x / TEAM;
    const i64 workers = (i64)gridDim.x * WORKERS;
    const u32 everyone = (1u << (blockDim.x >> 5)) - 1;
    const Bits64 until = now() + most;
    const i64 before = progress->windows; // anyone changes it: they meet first
    const bool huge = load(indptr + n) - load(indptr) > HUGE; // rows may be
    Bits64 meetings = 0;
    u32 rest = 0;
    bool few = false;
    u64 extended = 0, edges = 0, improved = 0;

    if (threadIdx.x < 8) given[threadIdx.x] = resting[threadIdx.x & 1] = 0;

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
        if (!w->far) return w->ended = CONVERGED, STOP;
        if (late || (windows && w->windows - before >= windows)) return STOP;
        const Z low = l[2], last = l[0];
        const Z from = w->windows && !better(last, low) ? last : low; // some that are not in use made it too low
        Z limit = SPREAD ? last : START;
        if (!SPREAD && flags & WINDOWED) {
            const Z rise = few && flags & GROWS ? l[1] + l[1] : l[1];
            if (!better(Z(START - rise), from)) limit = from + rise; // else it would wrap
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
                    live = bits_of(look_at(here + v)) == bits_of(value);
                }
                const bool later = live && better(limit, value);
                put(live && !later, v, other, room, progress, &progress->spilled);
                const i64 at = append(later, &progress->kept);
                if (later) { // no more than there were
                    far_next[at] = v;
                    queued_next[at] = value;
                    lowest = add(lowest, value);
                }
            }
            keep_best(limits + 2, lowest);
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
        const i64 share = (count + workers - 1) / workers;
        const u32 chunk = takes ? (u32)takes : share < TEAM ? (u32)share : TEAM; // no more than PLACES
        few = count < workers / FEW;
        rest ^= 1;
        if (threadIdx.x == 0) resting[rest ^ 1] = 0; // all have left it
        u32 head = 0, size = 0;
        bool late = false, dry = false;
        auto keep = [&](u32 at, IDX v, PTR begin, PTR end) {
            places[own][at % PLACES] = v;
            begins[own][at % PLACES] = begin;
            degrees[own][at % PLACES] = (u32)(end - begin);
        };
        for (u32 turn = 1;; turn++) {
            if (turn % LOOK == 0) late = first_of(now() > until);
            if (!size && !dry) {
                u64 at = 0;
                if (!lane) at = atomicAdd((u64 *)&progress->taken, (u64)chunk);
                at = first_of(at);
                dry = (i64)at >= count;
                size = dry ? 0 : (u32)(count - (i64)at < chunk ? count - at : chunk);
                for (u32 i = lane; i < size; i += TEAM) {
                    const IDX v = mine[at + i];
                    keep(head + i, v, load(indptr + v), load(indptr + v + 1));
                }
            }
            if (TEAM != 32 && !size) break;
            // A warp rests until another one gives it some, or all rest. Who gives takes the other's bit out of
            // `resting` before its own can be there: none sees that all rest while something is on its way.
            if (TEAM == 32 && !size) {
                if (!lane) {
                    u32 all = atomicOr(resting + rest, 1u << own) | 1u << own;
                    for (u32 tries = 0; all != everyone && !size; tries++) {
                        size = atomicExch(given + own, 0);
                        all = atomicOr(resting + rest, 0);
                        if (tries == PATIENT) *(volatile i64 *)&progress->crowded = 1, all = everyone;
                    }
                }
                size = __shfl_sync(ALL, size, 0);
                if (!size) break;
                __threadfence_block();
                const IDX v = (IDX)atomicExch(gifts[own] + lane, 0);
                if (lane < size) keep(head + lane, v, load(indptr + v), load(indptr + v + 1));
            } else if (TEAM == 32 && size > MANY) {
                u32 to = 0;
                together();
                if (!lane) {
                    to = atomicOr(resting + rest, 0);
                    to &= 0 - to;
                    if (to) to &= atomicAnd(resting + rest, ~to);
                }
                to = __shfl_sync(ALL, to, 0);
                if (to) {
                    const u32 who = __ffs(to) - 1, half = size / 2 < 32 ? size / 2 : 32;
                    size -= half;
                    if (lane < half) atomicExch(gifts[who] + lane, places[own][(head + size + lane) % PLACES]);
                    __threadfence_block();
                    __syncwarp();
                    if (!lane) atomicExch(given + who, half);
                }
            }
            together();
            u32 group = size < TEAM ? size : TEAM;
            const u32 at = (head + lane) % PLACES;
            const IDX v = places[own][at];
            const i64 begin = begins[own][at];
            u32 degree = lane < group ? degrees[own][at] : 0;
            if (late) { // others, or a later call, go on
                put(lane < group, v, other, room, progress, &progress->spilled);
                head = (head + group) % PLACES;
                size -= group;
                continue;
            }
            if (any(huge && degree > HUGE)) {
                group = 1;
                if (lane) degree = 0;
            }
            head = (head + group) % PLACES;
            size -= group;
            extended += !lane ? group : 0;
            edges += degree;
            u32 start, total;
            sum_before(degree, start, total);
            rows[own].list(v, begin, degree, start);
            together();
            for (u32 base = 0; base < total; base += TEAM) {
                const u32 t = base + lane, row = rows[own].of(t, base, degree, start);
                bool found = false, inside = !SPREAD;
                IDX u = 0;
                Z made = START;
                PTR u_begin = 0, u_end = 0;
                if (t < total) {
                    const i64 e = rows[own].first[row] + t;
                    u = load(cols + e);
                    const Z value = look_at(here + rows[own].vertex[row]);
                    made = term(READS_A ? load(avals + e * astride) : T_A(), value, 0, 0);
                    if (!PARTIAL || lets(mwords, u, flags)) {
                        if (SPREAD) inside = u >= first && u < first + n;
                        if (inside) {
                            const i64 r = SPREAD ? u - first : u;
                            u_begin = load(indptr + r); // under way beside what follows
                            u_end = load(indptr + r + 1);
                        }
                        if (is_start(made)) found = is_start(look_at(best + u)) && mark(bits, u);
                        else found = improves(made, replace(best + u, made));
                    }
                }
                improved += found;
                if (SPREAD) {
                    if (any_of_warp(found && !inside)) {
                        const bool new_one = found && !inside && mark(acc_words, u);
                        const i64 at = append_of(new_one, touched_count);
                        if (new_one) touched[at] = u;
                    }
                    found &= inside;
                    u = (IDX)(u - first);
                }
                const bool later = found && better(limit, made);
                u32 place, many;
                count_before(found && !later, place, many);
                if (many) {
                    const u32 fit = PLACES - size;
                    if (found && !later && place < fit) keep(head + size + place, u, u_begin, u_end);
                    size += many < fit ? many : fit;
                    if (many > fit) put(found && !later && place >= fit, u, other, room, progress, &progress->spilled);
                }
                if (any_of_warp(later)) {
                    const i64 at = put(later, u, far_now, room, progress, &progress->far);
                    if (later && at < room) queued_now[at] = made;
                    if (later) lowest = add(lowest, made);
                }
                together();
            }
            together();
        }
        keep_best(limits + 2, lowest);
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
