// Rows of a product with a full x, as one stream of entries cut into tiles of equal length: a warp a tile, eight entries
// a lane. A bit an entry tells where rows begin. Values of x at the columns used most ("hubs") lie in shared memory; a
// column c >= 0 is a slot of x, c < 0 the hub ~c.
//
// Rows that end in a tile are finished there. What a tile has of the row that was open when it began goes to heads, of
// the row that is open when it ends to tails; pull_stream_join adds these up in the order of tiles.

const int EACH = 8, STEPS = 4, TILE = 32 * EACH * STEPS;

template <class T> struct alignas(sizeof(T) * EACH <= 16 ? sizeof(T) * EACH : 16) Pack { T v[EACH]; };

template <class T> DEVICE void load_pack(Pack<T> &pack, const T *p, i64 at, i64 left) {
    if (left >= EACH) {
        const int4 *from = (const int4 *)(p + at);
        int4 *to = (int4 *)&pack;
        if (sizeof(T) * EACH >= 16) {
#pragma unroll
            for (int i = 0; i < (int)(sizeof(T) * EACH / 16); i++)
                to[i] = __ldcs(from + i);
            return;
        }
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        pack.v[i] = i < left ? p[at + i] : T();
}

KERNEL_1024 pull_stream(i64 entries, const int *codes, const T_A *avals, i64 astride, const T_B *xvals,
                        const unsigned char *begins, const int *rows, const int *ranks, const int *hubs, i64 hub_count,
                        T_OUT *out_vals, Z *heads, Z *tails, i64 tiles) {
    extern __shared__ __align__(16) unsigned char shared[];
    T_B *hub = (T_B *)shared;
    for (int i = threadIdx.x; i < hub_count; i += blockDim.x)
        hub[i] = xvals[hubs[i]];
    __syncthreads();
    const T_A a0 = READS_A && !astride ? avals[0] : T_A();
    for (i64 tile = warp_id(); tile < tiles; tile += warp_count()) {
        const i64 first = tile * TILE;
        int rank = ranks[tile] - 1; // of the row that is open
        bool any = false;           // a row has begun in this tile
        Z open = START;
        Z head = START;
#pragma unroll 1
        for (int step = 0; step < STEPS; step++) {
            const i64 at = first + step * 32 * EACH + lane_id() * EACH, left = entries - at;
            Pack<int> code;
            Pack<T_A> a;
            u32 flags = 0;
            if (left > 0) {
                flags = begins[at >> 3];
                load_pack(code, codes, at, left);
                if (READS_A && astride) load_pack(a, avals, at, left);
            }
            T_B x[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++)
                if (READS_X && i < left) x[i] = code.v[i] < 0 ? hub[~code.v[i]] : load(xvals + code.v[i]);
            const u32 starts = __popc(flags);
            u32 upto = starts;
            for (int o = 1; o < 32; o <<= 1) {
                const u32 below = __shfl_up_sync(ALL, upto, o);
                if (lane_id() >= o) upto += below;
            }
            int mine = rank + (int)(upto - starts); // the row open at this lane's first entry
            // entries before the first beginning, and those after the last
            Z lead = START, acc = START;
            bool begun = false;
            int row = mine;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                if (i < left) {
                    const Z t = term(READS_A ? (astride ? a.v[i] : a0) : T_A(), READS_X ? x[i] : T_B(), 0, 0);
                    if (flags >> i & 1) {
                        if (begun) out_vals[rows ? rows[row] : row] = to_out(acc);
                        else lead = acc;
                        begun = true;
                        row++;
                        acc = t;
                    } else acc = add(acc, t);
                }
            }
            if (!begun) lead = acc;
            // what is open after each lane: its own sum if a row has begun in it, else the sum before it as well
            Z sum = acc;
            bool stop = begun;
            for (int o = 1; o < 32; o <<= 1) {
                const Z below = __shfl_up_sync(ALL, sum, o);
                const bool below_stop = __shfl_up_sync(ALL, (int)stop, o);
                if (lane_id() >= o) {
                    if (!stop) sum = add(below, sum);
                    stop |= below_stop;
                }
            }
            Z before = __shfl_up_sync(ALL, sum, 1);
            bool cut = __shfl_up_sync(ALL, (int)stop, 1);
            if (lane_id() == 0) before = START, cut = false;
            if (begun) {
                const Z whole = add(cut ? before : add(open, before), lead);
                if (any || cut) out_vals[rows ? rows[mine] : mine] = to_out(whole);
                else head = whole; // began before this tile
            }
            const Z last = __shfl_sync(ALL, sum, 31);
            const bool ended = __shfl_sync(ALL, (int)stop, 31);
            const u32 who = __ballot_sync(ALL, begun && !any && !cut);
            if (who) head = __shfl_sync(ALL, head, __ffs(who) - 1);
            open = ended ? last : add(open, last);
            any |= ended;
            rank += __shfl_sync(ALL, (int)upto, 31);
        }
        if (lane_id() == 0) {
            heads[tile] = any ? head : open;
            if (any) tails[tile] = open;
        }
    }
}

// A warp a tile in which a row has begun: the last of these is open at the end; it goes on through the tiles that follow.
KERNEL_1024 pull_stream_join(i64 entries, const unsigned char *begins, const int *rows, const int *ranks,
                             const Z *heads, const Z *tails, T_OUT *out_vals, const i64 *words, i64 *out_words,
                             i64 nwords, i64 *count, i64 present, i64 tiles) {
    for (i64 tile = warp_id(); tile < tiles; tile += warp_count()) {
        const int rank = ranks[tile + 1];
        if (rank == ranks[tile]) continue;
        Z acc = lane_id() == 0 ? tails[tile] : START;
        for (i64 base = tile + 1; base < tiles; base += 32) {
            const i64 next = base + lane_id();
            const bool on = next < tiles && !(begins[next * (TILE / 8)] & 1);
            const u32 stops = __ballot_sync(ALL, !on || ranks[next + 1] != ranks[next]);
            const int last = stops ? __ffs(stops) - 1 : 32; // the first lane that ends the row
            const bool takes = on && lane_id() <= last;
            acc = add(acc, takes ? heads[next] : START);
            if (stops) break;
        }
        for (int o = 16; o; o >>= 1)
            acc = add(acc, __shfl_down_sync(ALL, acc, o));
        if (lane_id() == 0) out_vals[rows ? rows[rank - 1] : rank - 1] = to_out(acc);
    }
    for (i64 w = thread_id(); w < nwords; w += thread_count())
        out_words[w] = words[w];
    if (thread_id() == 0) count[0] += present;
}
