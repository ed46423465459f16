// Rows of a product, as one stream of entries cut into tiles of equal length: a warp a tile, eight entries
// a lane. A bit an entry tells where rows begin. A code is a place in x, which the kernel pull_stream_order has brought
// into the order of use if there is one; then the first values ("hubs") lie in shared memory. PARTIAL: x has presence
// bits, and so has the result; otherwise x is full, and the rows with entries are the result's. `packed`: absent values
// of x are ABSENT, so that one read tells both. Rows in `seen` (0: none) have a sum of earlier streams, which is added.
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
        if (i < left) pack.v[i] = p[at + i];
}

// A sum, and (PARTIAL) whether it has any term.
struct Sum {
    Z value;
    bool have;
    DEVICE Sum() : value(START), have(!PARTIAL) {}
    DEVICE Sum(Z z, bool h) : value(z), have(h) {}
    DEVICE Sum operator+(const Sum &other) const { return Sum(add(value, other.value), have | other.have); }
};
DEVICE Sum from_lane(const Sum &sum, int lane) {
    return Sum(__shfl_sync(ALL, sum.value, lane), PARTIAL ? __shfl_sync(ALL, (int)sum.have, lane) : true);
}
DEVICE Sum from_below(const Sum &sum, int lanes) {
    return Sum(__shfl_up_sync(ALL, sum.value, lanes), PARTIAL ? __shfl_up_sync(ALL, (int)sum.have, lanes) : true);
}
DEVICE Sum from_above(const Sum &sum, int lanes) {
    return Sum(__shfl_down_sync(ALL, sum.value, lanes), PARTIAL ? __shfl_down_sync(ALL, (int)sum.have, lanes) : true);
}

// ABSENT is a NaN that no value of x is once pull_stream_order has brought all of them to the ordinary one.
const bool CAN_PACK = PARTIAL && READS_X && T_B(0.5) != T_B(0) && sizeof(T_B) >= 4;
DEVICE bool absent(float v) { return __float_as_uint(v) == 0x7fffabadu; }
DEVICE bool absent(double v) { return __double_as_longlong(v) == 0x7fffabadabadabadLL; }
template <class T> DEVICE bool absent(T) { return false; }
DEVICE void make_absent(float &v) { v = __uint_as_float(0x7fffabadu); }
DEVICE void make_absent(double &v) { v = __longlong_as_double(0x7fffabadabadabadLL); }
template <class T> DEVICE void make_absent(T &) {}

// x by the order of use (order = 0: as it is), packed or with its bits.
KERNEL pull_stream_order(const int *order, i64 n, const T_B *xvals, i64 xstride, const i64 *xwords, T_B *out,
                         i64 *out_words, i64 packed) {
    for (i64 i = thread_id(); i < whole_warps(n); i += thread_count()) {
        const bool in = i < n;
        const i64 at = in ? order ? order[i] : i : 0;
        const bool here = in && (!PARTIAL || bit(xwords, at));
        if (in && READS_X && xstride) {
            T_B v = xvals[at];
            if (CAN_PACK && packed) {
                if (!here) make_absent(v);
                else if (v != v) v = T_B(__builtin_nan(""));
            }
            out[i] = v;
        }
        if (PARTIAL && !packed) store_bits(out_words, i, here);
    }
}

// Where finished rows go; `found` counts them.
struct Result {
    const int *rows;
    const i64 *seen;
    T_OUT *vals;
    i64 *words;
    i64 found;
    DEVICE void put(int rank, const Sum &sum) {
        if (PARTIAL && !sum.have) return;
        const i64 row = rows ? rows[rank] : rank;
        const bool again = seen && bit(seen, row);
        vals[row] = to_out(again ? add(vals[row], sum.value) : sum.value);
        if (!PARTIAL || again) return;
        mark(words, row);
        found++;
    }
};

KERNEL_1024 pull_stream(i64 entries, const int *codes, const T_A *avals, i64 astride, const T_B *xvals, i64 xstride,
                        const i64 *xwords, const unsigned char *begins, const int *rows, const int *ranks, Sum *heads,
                        Sum *tails, const i64 *seen, i64 hub_count, T_OUT *out_vals, i64 *out_words, i64 *count,
                        i64 tiles, i64 packed) {
    extern __shared__ __align__(16) unsigned char shared[];
    T_B *hub = (T_B *)shared;
    u32 *hub_bits = (u32 *)(shared + (READS_X ? (hub_count * sizeof(T_B) + 15) / 16 * 16 : 0));
    if (READS_X && xstride)
        for (int i = threadIdx.x; i < hub_count; i += blockDim.x)
            hub[i] = xvals[i];
    if (PARTIAL && !packed)
        for (int i = threadIdx.x; i < (hub_count + 31) / 32; i += blockDim.x)
            hub_bits[i] = ((const u32 *)xwords)[i];
    __syncthreads();
    const T_A a0 = READS_A && !astride ? avals[0] : T_A();
    const T_B x0 = READS_X && !xstride ? xvals[0] : T_B();
    Result result = {rows, seen, out_vals, out_words, 0};
    for (i64 tile = warp_id(); tile < tiles; tile += warp_count()) {
        const i64 first = tile * TILE;
        int rank = ranks[tile] - 1; // of the row that is open
        bool any = false;           // a row has begun in this tile
        Sum open, head;
        Pack<int> next; // the columns of the step to come are on their way while this one gathers
        load_pack(next, codes, first + lane_id() * EACH, entries - first - lane_id() * EACH);
#pragma unroll 1
        for (int step = 0; step < STEPS; step++) {
            const i64 at = first + step * 32 * EACH + lane_id() * EACH, left = entries - at, then = 32 * EACH;
            const Pack<int> code = next;
            Pack<T_A> a;
            u32 flags = 0, on = 0xff;
            if (left > 0) {
                flags = begins[at >> 3];
                if (READS_A && astride) load_pack(a, avals, at, left);
            }
            if (step + 1 < STEPS) load_pack(next, codes, at + then, left - then);
            T_B x[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                if (i >= left) continue;
                const int c = code.v[i];
                const bool by_bits = PARTIAL && !(CAN_PACK && packed);
                const bool in = c < hub_count;
                if (by_bits && !(in ? hub_bits[c >> 5] >> (c & 31) & 1 : bit(xwords, c))) on &= ~(1u << i);
                if (READS_X) x[i] = !xstride ? x0 : by_bits && !(on >> i & 1) ? T_B() : in ? hub[c] : load(xvals + c);
                if (PARTIAL && !by_bits && absent(x[i])) on &= ~(1u << i);
            }
            const u32 starts = __popc(flags), upto = inclusive_sum(starts);
            const int mine = rank + (int)(upto - starts); // the row open at this lane's first entry
            // the sum of the entries before the first row that begins here, and of those of the last
            Sum lead, acc;
            bool begun = false;
            int row = mine;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                if (i >= left) continue;
                const Sum t(PARTIAL && !(on >> i & 1) ? START
                                                      : term(READS_A ? (astride ? a.v[i] : a0) : T_A(),
                                                             READS_X ? x[i] : T_B(), 0, 0),
                            on >> i & 1);
                if (flags >> i & 1) {
                    if (begun) result.put(row, acc);
                    else lead = acc;
                    begun = true;
                    row++;
                    acc = t;
                } else acc = acc + t;
            }
            if (!begun) lead = acc;
            // what is open after each lane: its own sum if a row has begun in it, else the sum before it as well
            Sum sum = acc;
            bool stop = begun;
            for (int o = 1; o < 32; o <<= 1) {
                const Sum below = from_below(sum, o);
                const bool below_stop = __shfl_up_sync(ALL, (int)stop, o);
                if (lane_id() < o) continue;
                if (!stop) sum = below + sum;
                stop |= below_stop;
            }
            Sum before = from_below(sum, 1);
            bool cut = __shfl_up_sync(ALL, (int)stop, 1);
            if (lane_id() == 0) before = Sum(), cut = false;
            if (begun) {
                const Sum whole = (cut ? before : open + before) + lead;
                if (any || cut) result.put(mine, whole);
                else head = whole; // it began before this tile
            }
            const u32 who = __ballot_sync(ALL, begun && !any && !cut);
            if (who) head = from_lane(head, __ffs(who) - 1);
            const bool over = __shfl_sync(ALL, (int)stop, 31);
            const Sum last = from_lane(sum, 31);
            open = over ? last : open + last;
            any |= over;
            rank += __shfl_sync(ALL, (int)upto, 31);
        }
        if (lane_id() == 0) {
            heads[tile] = any ? head : open;
            if (any) tails[tile] = open;
        }
    }
    if (PARTIAL) block_add(count, result.found);
}

// The last row that has begun in a tile is open at its end; it goes on through the tiles that follow. A lane a tile; of
// rows that go on for more than NEAR tiles the warp adds the rest.
const int NEAR = 4;

KERNEL_1024 pull_stream_join(const unsigned char *begins, const int *rows, const int *ranks, const Sum *heads,
                             const Sum *tails, const i64 *seen, T_OUT *out_vals, const i64 *words,
                             i64 *out_words, i64 nwords, i64 *count, i64 present, i64 tiles) {
    Result result = {rows, seen, out_vals, out_words, 0};
    for (i64 tile = thread_id(); tile < whole_warps(tiles); tile += thread_count()) {
        const int rank = tile < tiles ? ranks[tile + 1] : 0;
        const bool mine = tile < tiles && rank != ranks[tile];
        Sum acc = mine ? tails[tile] : Sum();
        i64 next = tile + 1;
        bool more = mine;
        for (int step = 0; more && step < NEAR; step++, next++) {
            if (next < tiles && !(begins[next * (TILE / 8)] & 1)) acc = acc + heads[next];
            else more = false;
            more = more && ranks[next + 1] == ranks[next];
        }
        __syncwarp();
        for (u32 left = __ballot_sync(ALL, more); left; left &= left - 1) {
            const int who = __ffs(left) - 1;
            Sum rest;
            for (i64 base = __shfl_sync(ALL, next, who); base < tiles; base += 32) {
                const i64 at = base + lane_id();
                const bool on = at < tiles && !(begins[at * (TILE / 8)] & 1);
                const u32 stops = __ballot_sync(ALL, !on || ranks[at + 1] != ranks[at]);
                const int last = stops ? __ffs(stops) - 1 : 32; // the first lane that ends the row
                if (on && (int)lane_id() <= last) rest = rest + heads[at];
                if (stops) break;
            }
            for (int o = 16; o; o >>= 1)
                rest = rest + from_above(rest, o);
            rest = from_lane(rest, 0);
            if ((int)lane_id() == who) acc = acc + rest;
        }
        if (mine) result.put(rank - 1, acc);
    }
    if (PARTIAL) return block_add(count, result.found);
    for (i64 w = thread_id(); w < nwords; w += thread_count())
        out_words[w] = words[w];
    if (thread_id() == 0) count[0] += present;
}
