// Entries of a matrix before they are rows: counted and picked by their rows, told apart once they are sorted, and drawn.
// A key is a row, counted from the first one that is wanted, beside a column. bytes.cu comes before.

#define BINS 8192

// How many entries each group of 1 << shift rows has.
DEVICE void clear_bins(u32 *mine) {
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) mine[i] = 0;
    __syncthreads();
}
DEVICE void add_bins(const u32 *mine, u64 *bins) {
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += blockDim.x)
        if (mine[i]) atomicAdd(bins + i, (u64)mine[i]);
}
template <class Row> DEVICE void binned(const Row *rows, i64 n, i64 shift, u64 *bins) {
    __shared__ u32 mine[BINS];
    clear_bins(mine);
    EACH(i, n) atomicAdd(mine + (rows[i] >> shift), 1u);
    add_bins(mine, bins);
}

// Entries of rows low .. high - 1 in their order: how many each tile has, and their keys and places.
template <class Row, class Column>
DEVICE void picked(const Row *rows, const Column *cols, i64 n, i64 low, i64 high, i64 bits, const i64 *offsets, i64 *keys,
                   i64 *places) {
    each_kept(n, offsets, [&](i64 e) { return rows[e] >= low && rows[e] < high; }, [&](i64 e, i64 at) {
        keys[at] = ((i64)rows[e] - low) << bits | (i64)cols[e];
        if (places) places[at] = e;
    });
}
#define PICKED(size, Row) \
KERNEL binned##size(const Row *rows, i64 n, i64 shift, u64 *bins) { binned(rows, n, shift, bins); } \
KERNEL picked_counts##size(const Row *rows, i64 n, i64 low, i64 high, i64 *counts) { \
    tile_counts(n, counts, [&](i64 e) { return rows[e] >= low && rows[e] < high; }); \
} \
KERNEL picked##size##4(const Row *rows, const u32 *cols, i64 n, i64 low, i64 high, i64 bits, const i64 *offsets, i64 *keys, \
                       i64 *places) { \
    picked(rows, cols, n, low, high, bits, offsets, keys, places); \
} \
KERNEL picked##size##8(const Row *rows, const i64 *cols, i64 n, i64 low, i64 high, i64 bits, const i64 *offsets, i64 *keys, \
                       i64 *places) { \
    picked(rows, cols, n, low, high, bits, offsets, keys, places); \
}
PICKED(4, u32)
PICKED(8, i64)

// Of sorted keys, those that differ from the one before.
KERNEL distinct_counts(const i64 *keys, i64 n, i64 *counts) {
    tile_counts(n, counts, [&](i64 e) { return e == 0 || keys[e] != keys[e - 1]; });
}
KERNEL distinct(const i64 *keys, i64 n, const i64 *offsets, i64 *out) {
    each_kept(n, offsets, [&](i64 e) { return e == 0 || keys[e] != keys[e - 1]; },
              [&](i64 e, i64 at) { out[at] = keys[e]; });
}
// Whole weights from `least` on, `count` different ones: a hash of the edge, as gbgpu/io/generate.py has it. `code`: the size
// of an integer in bytes, 5 for FP32, 9 for FP64.
KERNEL weighed(const i64 *keys, i64 n, i64 row0, i64 bits, i64 size, i64 symmetric, i64 least, i64 count, i64 code, void *out) {
    EACH(e, n) {
        const i64 row = (keys[e] >> bits) + row0, col = keys[e] & ((1ll << bits) - 1);
        const u64 first = symmetric && col < row ? col : row, second = symmetric && col < row ? row : col;
        const u64 hashed = (first * (u64)size + second) * 0x9E3779B97F4A7C15ull >> 40;
        const i64 weight = least + (i64)(hashed % (u64)count);
        switch (code) {
        case 0: ((bool *)out)[e] = weight != 0; break;
        case 1: ((signed char *)out)[e] = (signed char)weight; break;
        case 2: ((short *)out)[e] = (short)weight; break;
        case 4: ((int *)out)[e] = (int)weight; break;
        case 5: ((float *)out)[e] = (float)weight; break;
        case 9: ((double *)out)[e] = (double)weight; break;
        default: ((i64 *)out)[e] = weight;
        }
    }
}

// Edges as NumPy's generator draws them: PCG64 (O'Neill, "PCG", HMC-CS-2014-0905), a linear congruential generator of 128
// bits of which a product and a sum lead any number of words ahead.
struct Wide {
    u64 low, high;
};
struct Jump {
    Wide times, plus;
};
DEVICE Wide jumped(Wide a, const Jump &j) {
    const Wide b = j.times;
    const u64 low = a.low * b.low, sum = low + j.plus.low;
    return {sum, __umul64hi(a.low, b.low) + a.low * b.high + a.high * b.low + j.plus.high + (sum < low)};
}
DEVICE u64 word_of(Wide state) {
    const u64 mixed = state.high ^ state.low, turn = state.high >> 58;
    return mixed >> turn | mixed << (-turn & 63);
}
enum { RMAT, UNIFORM, GRID };
struct Draw {
    Wide state;       // before the first word of all that are drawn
    Jump one, plane;  // to the next word; to the same draw of the next bit, or of the other end
    Jump threads[33]; // 1 << i threads ahead, each of which takes UNITS draws; the last: all threads
    double cuts[3];   // probabilities
    i64 first, units, planes, n, side;
};
#define UNITS 16
// The ends of draws from a thread's place on; bits of those that are edges.
template <int KIND> DEVICE u32 drawn(const Draw &d, Wide at, i64 unit, const u32 *labels, u32 *from, u32 *to) {
    u32 real = 0;
#pragma unroll
    for (int k = 0; k < UNITS; k++) from[k] = to[k] = 0;
    for (int plane = 0; plane < (KIND == RMAT ? (int)d.planes : KIND == UNIFORM ? 2 : 1); plane++) {
        Wide state = at;
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            if (KIND == GRID || k % 2 == 0) state = jumped(state, d.one);
            const u64 word = word_of(state);
            const u32 half = k % 2 ? (u32)(word >> 32) : (u32)word;
            if (KIND == RMAT) {
                const float where = (half >> 8) * (1.0f / 16777216.0f);
                const bool lower = where >= (float)d.cuts[1];
                const bool right = (where >= (float)d.cuts[0] && !lower) || where >= (float)d.cuts[2];
                from[k] |= (u32)lower << plane;
                to[k] |= (u32)right << plane;
            } else if (KIND == UNIFORM) {
                const u32 id = (u32)((u64)half * (u64)d.n >> 32);
                if (plane) to[k] = id;
                else from[k] = id;
            } else {
                const i64 street = unit + k, across = d.side * (d.side - 1);
                const bool down = street >= across;
                const i64 a = down ? street - across : street / (d.side - 1) * d.side + street % (d.side - 1);
                from[k] = (u32)a;
                to[k] = (u32)(a + (down ? d.side : 1));
                if ((word >> 11) * (1.0 / 9007199254740992.0) < d.cuts[0]) real |= 1u << k;
            }
        }
        at = jumped(at, d.plane);
    }
#pragma unroll
    for (int k = 0; k < UNITS; k++) {
        if (labels) {
            from[k] = labels[from[k]];
            to[k] = labels[to[k]];
        }
        if (KIND != GRID && from[k] != to[k]) real |= 1u << k;
        if (unit + k >= d.first + d.units) real &= ~(1u << k);
    }
    return real;
}
#define DRAWS(d) \
    const i64 thread = blockIdx.x * (i64)blockDim.x + threadIdx.x, threads = gridDim.x * (i64)blockDim.x; \
    Wide at = d.state; \
    for (int i = 0; thread >> i; i++) \
        if (thread >> i & 1) at = jumped(at, d.threads[i]); \
    const i64 end = d.first + d.units; \
    for (i64 unit = d.first + thread * UNITS; unit - thread % 32 * UNITS < end; \
         unit += threads * UNITS, at = jumped(at, d.threads[32]))
template <int KIND> DEVICE void drawn_bins(const Draw &d, const u32 *labels, i64 both, i64 shift, u64 *bins) {
    __shared__ u32 mine[BINS];
    clear_bins(mine);
    u32 from[UNITS], to[UNITS];
    DRAWS(d) {
        const u32 real = drawn<KIND>(d, at, unit, labels, from, to);
#pragma unroll
        for (int k = 0; k < UNITS; k++)
            if (real >> k & 1) {
                atomicAdd(mine + (from[k] >> shift), 1u);
                if (both) atomicAdd(mine + (to[k] >> shift), 1u);
            }
    }
    add_bins(mine, bins);
}
// Keys of the edges in rows low .. high - 1, in any order, `most` at most; how many there are.
template <int KIND>
DEVICE void drawn_keys(const Draw &d, const u32 *labels, i64 both, i64 low, i64 high, i64 bits, i64 *keys, i64 most, u64 *count) {
    u32 from[UNITS], to[UNITS];
    DRAWS(d) {
        const u32 real = drawn<KIND>(d, at, unit, labels, from, to);
        u32 there = 0, back = 0;
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            if (from[k] >= low && from[k] < high) there |= 1u << k;
            if (both && to[k] >= low && to[k] < high) back |= 1u << k;
        }
        there &= real;
        back &= real;
        const int mine = __popc(there) + __popc(back);
        const int upto = inclusive_sum(mine);
        u64 place = 0;
        if (LANE == 31 && upto) place = atomicAdd(count, (u64)upto);
        place = __shfl_sync(~0u, place, 31) + upto - mine;
        if (place + mine > (u64)most) continue;
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            if (there >> k & 1) keys[place++] = ((i64)from[k] - low) << bits | (i64)to[k];
            if (back >> k & 1) keys[place++] = ((i64)to[k] - low) << bits | (i64)from[k];
        }
    }
}
#define DRAWN(name, KIND) \
KERNEL name##_bins(const __grid_constant__ Draw d, const u32 *labels, i64 both, i64 shift, u64 *bins) { \
    drawn_bins<KIND>(d, labels, both, shift, bins); \
} \
KERNEL name##_keys(const __grid_constant__ Draw d, const u32 *labels, i64 both, i64 low, i64 high, i64 bits, i64 *keys, \
                   i64 most, u64 *count) { \
    drawn_keys<KIND>(d, labels, both, low, high, bits, keys, most, count); \
}
DRAWN(rmat, RMAT)
DRAWN(uniform, UNIFORM)
DRAWN(grid, GRID)
