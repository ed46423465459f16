// What is asked of arrays and of the rows of matrices, beside what bytes.cu has, which comes before.

// A kernel for each size of elements, or of offsets and ids.
#define SIZES(kernel) kernel(1, unsigned char) kernel(2, unsigned short) kernel(4, u32) kernel(8, u64)
#define OFFSETS(kernel) kernel(4, int) kernel(8, i64)

// Several copies (of the first *count elements of a size, where there is a count), and arrays that become zero.
struct Entry {
    unsigned char *out;
    const unsigned char *in;
    i64 bytes;
    const i64 *count;
    i64 size;
};
struct Entries {
    Entry all[24];
};
KERNEL at_once(const __grid_constant__ Entries entries, i64 n) {
    for (i64 i = 0; i < n; i++) {
        const Entry &one = entries.all[i];
        const i64 bytes = one.count ? min(one.bytes, *one.count * one.size) : one.bytes;
        if (one.in) copy_all(one.out, one.in, bytes);
        else set_all(one.out, bytes, 0);
    }
}

// What values are at set bits.
#define WHERE(size, type) \
KERNEL where##size(const type *in, const u64 *words, type *out, i64 n) { \
    EACH(i, n) if (words[i >> 6] >> (i & 63) & 1) out[i] = in[i]; \
}
SIZES(WHERE)

// How many booleans are true, and how many bits are set.
#define TALLY(name, type, each) \
KERNEL name(const type *in, u64 *out, i64 n) { \
    u32 mine = 0; \
    EACH(i, n) mine += each; \
    mine = __reduce_add_sync(~0u, mine); \
    if (threadIdx.x % 32 == 0 && mine) atomicAdd(out, (u64)mine); \
}
TALLY(truths, unsigned char, in[i] != 0)
TALLY(set_bits, u64, __popcll(in[i]))
// Flags: whether a row has no entries, and whether two arrays differ in a bit.
#define FLAGS(size, type) \
KERNEL empties##size(const type *indptr, i64 *out, i64 n) { \
    EACH(i, n) if (indptr[i] == indptr[i + 1]) *out = 1; \
} \
KERNEL longest##size(const type *indptr, i64 *out, i64 n) { \
    i64 mine = 0; \
    EACH(i, n) mine = max(mine, (i64)(indptr[i + 1] - indptr[i])); \
    if (mine > *(volatile i64 *)out) atomicMax(out, mine); \
} \
KERNEL differ##size(const type *one, const type *two, i64 *out, i64 n) { \
    EACH(i, n) if (one[i] != two[i]) *out = 1; \
}
SIZES(FLAGS)

// Lengths of rows, a bit for each that has entries, and how many these are.
#define LENGTHS(size, type) \
KERNEL lengths##size(const type *indptr, i64 *out, u32 *bits, u64 *count, i64 n) { \
    u32 mine = 0; \
    EACH(i, (n + 63) & ~63ll) { \
        const i64 length = i < n ? indptr[i + 1] - indptr[i] : 0; \
        if (length) out[i] = length; \
        const u32 found = __ballot_sync(~0u, length > 0); \
        if (threadIdx.x % 32 == 0) { \
            bits[i >> 5] = found; \
            mine += __popc(found); \
        } \
    } \
    if (mine) atomicAdd(count, (u64)mine); \
}
OFFSETS(LENGTHS)

#define COUNTS(size, type) \
KERNEL counts##size(const type *ids, u64 *out, i64 step, i64 n) { \
    EACH(i, n) atomicAdd(out + ids[i * step], 1ull); \
}
OFFSETS(COUNTS)

// The row of each entry, beside its column if there are any. Two threads find the rows of a tile, the others search
// among these.
template <class Offset> DEVICE i64 row_of(const Offset *indptr, i64 e, i64 lo, i64 hi) {
    while (hi - lo > 1) {
        const i64 middle = (lo + hi) / 2;
        if (indptr[middle] <= e) lo = middle;
        else hi = middle;
    }
    return lo;
}
#define OWNERS(name, Offset, Column) \
KERNEL name(const Offset *indptr, i64 n, const Column *cols, i64 bits, i64 *out, i64 total) { \
    __shared__ i64 ends[2]; \
    for (i64 first = blockIdx.x * 2048ll; first < total; first += gridDim.x * 2048ll) { \
        const i64 last = (first + 2048 < total ? first + 2048 : total) - 1; \
        if (threadIdx.x < 2) ends[threadIdx.x] = row_of(indptr, threadIdx.x ? last : first, 0, n); \
        __syncthreads(); \
        for (i64 e = first + threadIdx.x; e <= last; e += 256) { \
            const i64 row = row_of(indptr, e, ends[0], ends[1] + 1); \
            out[e] = cols ? ((i64)cols[e] << bits) | row : row; \
        } \
        __syncthreads(); \
    } \
}
OWNERS(owners44, int, int)
OWNERS(owners84, i64, int)
OWNERS(owners48, int, i64)
OWNERS(owners88, i64, i64)

// Entries with codes of low .. high - 1: how many each tile has; and, side by side, what `in` has at them, with the
// place where each row's begin (begins: a bit an entry; ranks: rows that began before each tile).
KERNEL cut_counts(const int *codes, i64 n, i64 low, i64 high, i64 *counts) {
    tile_counts(n, counts, [&](i64 e) { return codes[e] >= low && codes[e] < high; });
}
#define CUT(size, type) \
KERNEL cut##size(const int *codes, i64 n, i64 low, i64 high, const i64 *offsets, const type *in, type *out, \
                 const unsigned char *begins, const int *ranks, i64 *firsts) { \
    const u32 below = (1u << LANE) - 1; \
    TILES(n) { \
        i64 place = offsets[tile], row = ranks[tile]; \
        for (int i = 0; i < 1024 && tile * 1024 + i < n; i += 32) { \
            const i64 e = tile * 1024 + i + LANE; \
            const int code = e < n ? codes[e] : -1; \
            const bool taken = code >= low && code < high, first = e < n && begins[e >> 3] >> (e & 7) & 1; \
            const u32 all = __ballot_sync(~0u, taken), rows = __ballot_sync(~0u, first); \
            if (taken) out[place + __popc(all & below)] = in[e]; \
            if (first && firsts) firsts[row + __popc(rows & below)] = place + __popc(all & below); \
            place += __popc(all); \
            row += __popc(rows); \
        } \
    } \
}
SIZES(CUT)

// Sums of all numbers before each, and of all: of tiles of 2048 at first, then of the tiles, then within each.
DEVICE i64 scanned(i64 mine, i64 *total) {
    __shared__ i64 warps[33];
    const u32 warp = threadIdx.x >> 5, count = blockDim.x >> 5;
    const i64 sum = inclusive_sum(mine);
    if (LANE == 31) warps[warp] = sum;
    __syncthreads();
    i64 before = 0, all = 0;
    for (u32 w = 0; w < count; w++) {
        if (w == warp) before = all;
        all += warps[w];
    }
    __syncthreads();
    *total = all;
    return before + sum - mine;
}
KERNEL tops(i64 *sums, i64 n) {
    i64 before = 0, total;
    for (i64 first = 0; first < n; first += blockDim.x) {
        const i64 i = first + threadIdx.x, mine = i < n ? sums[i] : 0;
        const i64 upto = scanned(mine, &total);
        if (i < n) sums[i] = before + upto;
        before += total;
    }
}
#define SCAN(size, type) \
KERNEL tiles##size(const type *in, i64 *sums, i64 n) { \
    for (i64 tile = blockIdx.x; tile * 2048 < n; tile += gridDim.x) { \
        i64 mine = 0, total; \
        for (i64 i = tile * 2048 + threadIdx.x; i < n && i < (tile + 1) * 2048; i += 256) mine += in[i]; \
        scanned(mine, &total); \
        if (threadIdx.x == 0) sums[tile] = total; \
    } \
} \
KERNEL scan##size(const type *in, const i64 *sums, i64 *out, i64 n) { \
    for (i64 tile = blockIdx.x; tile * 2048 < n; tile += gridDim.x) { \
        const i64 first = tile * 2048 + threadIdx.x * 8; \
        i64 mine = 0, total; \
        for (int k = 0; k < 8; k++) mine += first + k < n ? (i64)in[first + k] : 0; \
        i64 upto = sums[tile] + scanned(mine, &total); \
        for (int k = 0; k < 8 && first + k < n; k++) { \
            out[first + k] = upto; \
            upto += in[first + k]; \
        } \
        if (first < n && first + 8 >= n) out[n] = upto; \
    } \
}
OFFSETS(SCAN)
KERNEL counted(const u32 *bits, i64 *counts, i64 n) {
    EACH(i, n) counts[i] = __popc(bits[i]);
}
// How many of n numbers are below something, of which none comes after one that is not.
template <class Below> DEVICE i64 passed(i64 n, Below below) {
    i64 low = 0, high = n;
    while (low < high) {
        const i64 middle = (low + high) / 2;
        if (below(middle)) low = middle + 1;
        else high = middle;
    }
    return low;
}
// Of sorted keys: where those from i << bits on begin; and their lower bits.
#define SORTED(from, Key, to, type) \
KERNEL first##from##to(const Key *keys, i64 n, i64 bits, type *out, i64 most) { \
    EACH(i, most) { \
        out[i] = (type)passed(n, [&](i64 k) { return keys[k] < i << bits; }); \
    } \
} \
KERNEL low##from##to(const Key *keys, type *out, i64 mask, i64 n) { \
    EACH(i, n) out[i] = (type)(keys[i] & mask); \
} \
KERNEL bent##from##to(const Key *indptr, const type *cols, i64 first, i64 *out, i64 n) { \
    EACH(i, n) if (indptr[i] != i || cols[i] != first + i) *out = 1; \
}
SORTED(4, int, 4, int)
SORTED(4, int, 8, i64)
SORTED(8, i64, 4, int)
SORTED(8, i64, 8, i64)

// Rows of at least so many entries, as bits, and how many each 32 rows have; where such rows begin among the entries,
// if that is wanted.
#define BEGUN(size, type) \
KERNEL begun##size(const type *indptr, i64 n, i64 least, u32 *bits, i64 *counts, u32 *begins) { \
    EACH(i, (n + 63) & ~63ll) { \
        const i64 first = i < n ? indptr[i] : 0; \
        const bool on = i < n && indptr[i + 1] - first >= least; \
        if (on && begins) atomicOr(begins + (first >> 5), 1u << (first & 31)); \
        const u32 found = __ballot_sync(~0u, on); \
        if (threadIdx.x % 32 == 0) { \
            bits[i >> 5] = found; \
            counts[i >> 5] = __popc(found); \
        } \
    } \
}
OFFSETS(BEGUN)
DEVICE i64 bits_before(const u32 *bits, const i64 *upto, i64 i, i64 n) {
    const i64 word = i >> 5;
    return upto[word] + (i < n ? __popc(bits[word] & ((1u << (i & 31)) - 1)) : 0);
}
// Booleans as bits; and, of entries whose bits are set, how many come before some places, and what an array has there.
KERNEL packed(const unsigned char *flags, u32 *bits, i64 n) {
    EACH(i, (n + 63) & ~63ll) {
        const u32 found = __ballot_sync(~0u, i < n && flags[i]);
        if (threadIdx.x % 32 == 0) bits[i >> 5] = found;
    }
}
#define BEFORE(size, type) \
KERNEL before##size(const u32 *bits, const i64 *upto, const type *places, i64 *out, i64 n, i64 count) { \
    EACH(i, count) out[i] = bits_before(bits, upto, places[i], (n + 31) & ~31ll); /* bits from n on are 0 */ \
}
OFFSETS(BEFORE)
#define KEPT(size, type) \
KERNEL kept##size(const u32 *bits, const i64 *upto, const type *in, type *out, i64 n) { \
    EACH(i, n) if (bits[i >> 5] >> (i & 31) & 1) out[bits_before(bits, upto, i, n)] = in[i]; \
}
SIZES(KEPT)
// What `rows` has (their numbers, if it has nothing) where bits are set.
KERNEL listed(const u32 *bits, const i64 *upto, const int *rows, int *out, i64 n) {
    EACH(i, n) if (bits[i >> 5] >> (i & 31) & 1) out[bits_before(bits, upto, i, n)] = rows ? rows[i] : (int)i;
}
// Of rows that are long in A or in M: how many pieces the entries of M are; and the row and the first entry of each.
#define LONG_ROWS(size, type) \
KERNEL long_counts##size(const type *indptr, const type *mptr, i64 n, i64 least, i64 each, i64 *counts) { \
    EACH(i, n) { \
        const i64 a = indptr[i + 1] - indptr[i], m = mptr[i + 1] - mptr[i]; \
        counts[i] = a && (a >= least || m >= least) ? (m + each - 1) / each : 0; \
    } \
} \
KERNEL long_pieces##size(const type *mptr, i64 n, i64 each, const i64 *upto, i64 *out) { \
    EACH(i, n) \
        for (i64 at = upto[i]; at < upto[i + 1]; at++) { \
            out[2 * at] = i; \
            out[2 * at + 1] = mptr[i] + each * (at - upto[i]); \
        } \
}
OFFSETS(LONG_ROWS)
// How many rows whose bits are set begin before each tile.
#define RANKS(size, type) \
KERNEL ranks##size(const type *indptr, const u32 *bits, const i64 *upto, int *out, i64 n, i64 tiles) { \
    EACH(t, tiles + 1) { \
        const i64 row = passed(n, [&](i64 k) { return indptr[k] < t * 1024; }); \
        out[t] = (int)(row < n ? bits_before(bits, upto, row, n) : upto[(n + 31) >> 5]); \
    } \
}
OFFSETS(RANKS)
// Bits of rows (all n, if there is no list) join others; how many were not set.
KERNEL joined(const int *rows, u32 *bits, u64 *count, i64 n) {
    u32 mine = 0;
    EACH(i, n) {
        const int row = rows ? rows[i] : (int)i;
        mine += !(atomicOr(bits + (row >> 5), 1u << (row & 31)) >> (row & 31) & 1);
    }
    mine = __reduce_add_sync(~0u, mine);
    if (threadIdx.x % 32 == 0 && mine) atomicAdd(count, (u64)mine);
}
// Columns with those first in each row that are used most, a warp a row: four of them, by falling counts, from the left
// where these are equal. What they displace goes where they were.
#define USED_FIRST(size, type) \
KERNEL used_first##size(const type *indptr, const int *cols, const i64 *counts, int *out, i64 n) { \
    const int lane = threadIdx.x % 32; \
    const u32 before = (1u << lane) - 1; \
    for (i64 row = FIRST / 32; row < n; row += gridDim.x * (i64)blockDim.x / 32) { \
        const i64 begin = indptr[row], length = indptr[row + 1] - begin; \
        u64 best[4] = {0, 0, 0, 0}; /* a count above the complement of a place */ \
        for (i64 k = lane; k < length; k += 32) { \
            const int col = cols[begin + k]; \
            out[begin + k] = col; \
            u64 key = (u64)min(counts[col], 0x7fffffffll) << 32 | (u32)~k; \
            for (int i = 0; i < 4; i++) { \
                const u64 greater = max(best[i], key); \
                key = min(best[i], key); \
                best[i] = greater; \
            } \
        } \
        const int front = length < 4 ? (int)length : 4; \
        i64 place = -1; /* of the one that comes to this lane's place */ \
        for (int i = 0; i < front; i++) { \
            u64 most = best[0]; \
            for (int o = 16; o; o /= 2) most = max(most, __shfl_xor_sync(~0u, most, o)); \
            if (best[0] == most) best[0] = best[1], best[1] = best[2], best[2] = best[3], best[3] = 0; \
            if (lane == i) place = (u32)~(u32)most; \
        } \
        const bool mine = lane < front; \
        u32 stay = 0; /* of the first places, those whose columns stay among these */ \
        if (mine && place < front) stay = 1u << place; \
        stay = __reduce_or_sync(~0u, stay); \
        const bool free = mine && place >= front; \
        const u32 gaps = __ballot_sync(~0u, free), moved = ((1u << front) - 1) & ~stay; \
        int from = 0; \
        for (u32 left = moved, skip = __popc(gaps & before); left; left &= left - 1, skip--) \
            if (!skip) { \
                from = __ffs(left) - 1; \
                break; \
            } \
        const int col = mine ? cols[begin + place] : 0, other = free ? cols[begin + from] : 0; \
        __syncwarp(); \
        if (mine) out[begin + lane] = col; \
        if (free) out[begin + place] = other; \
    } \
}
OFFSETS(USED_FIRST)
// Keys that sort by falling counts, with numbers below; and, of sorted keys, the numbers, the place of each, the sum of
// the first `most` counts, and how many are not 0.
KERNEL falling(const i64 *counts, i64 *keys, i64 n) {
    EACH(i, n) keys[i] = (0x7fffffffll - min(counts[i], 0x7fffffffll)) << 32 | i;
}
KERNEL ranked(const i64 *keys, const i64 *counts, int *order, int *place, u64 *sums, i64 most, i64 n) {
    EACH(i, n) {
        const int id = (int)keys[i];
        order[i] = id;
        place[id] = (int)i;
        if (i < most) atomicAdd(sums, (u64)counts[id]);
        if (counts[id] && (i + 1 == n || !counts[(int)keys[i + 1]])) sums[1] = i + 1;
    }
}
// Rows as pieces of at most PIECE entries in lists, as kernels/gpu_slices.py tells: list l has the codes from l * width
// on, the last one all others. Of each list and row: the entries, and the pieces that these are.
const int PIECE = 128, WINDOW = 16384;
DEVICE int list_of(int code, i64 width, int last) { return (int)min(code / width, (i64)last); }
#define OF_ROWS(row, n) \
    for (i64 row = FIRST / 32; row < n; row += gridDim.x * (i64)blockDim.x / 32)
#define LIST_COUNTS(size, type) \
KERNEL list_counts##size(const type *indptr, const int *codes, i64 n, i64 width, i64 last, int *counts) { \
    const int lane = threadIdx.x % 32; \
    OF_ROWS(row, n) { \
        const i64 end = indptr[row + 1]; \
        for (i64 first = indptr[row]; first < end; first += 32) { \
            const int list = first + lane < end ? list_of(codes[first + lane], width, (int)last) : -1; \
            const u32 peers = __match_any_sync(~0u, list); \
            if (list >= 0 && lane == __ffs(peers) - 1) atomicAdd(counts + list * n + row, __popc(peers)); \
        } \
    } \
}
OFFSETS(LIST_COUNTS)
KERNEL piece_counts(const int *counts, int *pieces, i64 n) {
    EACH(i, n) pieces[i] = (counts[i] + PIECE - 1) / PIECE;
}
// Keys that sort pieces by window, long ones first, then as they are numbered; and how many pieces a row has in all.
KERNEL piece_keys(const int *counts, const i64 *firsts, i64 *keys, i64 n, i64 lists) {
    const i64 windows = (n + WINDOW - 1) / WINDOW;
    EACH(i, n * lists) {
        const i64 window = i / n * windows + i % n / WINDOW;
        for (i64 piece = firsts[i]; piece < firsts[i + 1]; piece++) {
            const i64 length = min((i64)PIECE, counts[i] - (piece - firsts[i]) * PIECE);
            keys[piece] = window << 40 | (255 - length) << 32 | piece;
        }
    }
}
KERNEL row_pieces(const i64 *firsts, int *out, i64 n, i64 lists) {
    EACH(row, n) {
        i64 found = 0;
        for (i64 l = 0; l < lists; l++) found += firsts[l * n + row + 1] - firsts[l * n + row];
        out[row] = (int)found;
    }
}
// Of sorted keys: the cell of each piece, what each cell has, and the groups of four entries of each 32 cells. Pieces
// of a window begin with `before` among the sorted, and with `base` among the cells.
KERNEL piece_cells(const i64 *keys, const i64 *before, const i64 *base, int *cells, unsigned char *lengths,
                   int *widths, i64 n) {
    EACH(i, n) {
        const i64 key = keys[i], window = key >> 40, cell = base[window] + i - before[window];
        const int length = 255 - (int)(key >> 32 & 255);
        cells[(u32)key] = (int)cell;
        lengths[cell] = (unsigned char)length;
        if (cell % 32 == 0) widths[cell / 32] = (length + 3) / 4;
    }
}
KERNEL row_cells(const i64 *firsts, const int *cells, const i64 *ptr, int *out, i64 n, i64 lists) {
    EACH(row, n) {
        i64 at = ptr[row];
        for (i64 l = 0; l < lists; l++)
            for (i64 piece = firsts[l * n + row]; piece < firsts[l * n + row + 1]; piece++)
                out[at++] = cells[piece];
    }
}
// Where each entry goes: four of a piece side by side, then those of the next cell. The codes of all lists but the last
// one, of 16 bits, end at `split`.
#define PIECED(size, type) \
KERNEL pieced##size(const type *indptr, const int *codes, i64 n, i64 width, i64 last, const i64 *firsts, \
                    const int *cells, const i64 *offs, i64 split, unsigned short *near, int *far, i64 *places) { \
    __shared__ int before[8][32]; \
    const int lane = threadIdx.x % 32; \
    int *mine = before[threadIdx.x / 32]; \
    OF_ROWS(row, n) { \
        const i64 end = indptr[row + 1]; \
        mine[lane] = 0; \
        __syncwarp(); \
        for (i64 first = indptr[row]; first < end; first += 32) { \
            const int code = first + lane < end ? codes[first + lane] : 0; \
            const int list = first + lane < end ? list_of(code, width, (int)last) : -1; \
            const u32 peers = __match_any_sync(~0u, list); \
            const int rank = list < 0 ? 0 : mine[list] + __popc(peers & ((1u << lane) - 1)); \
            __syncwarp(); \
            if (list >= 0 && lane == __ffs(peers) - 1) mine[list] += __popc(peers); \
            __syncwarp(); \
            if (list < 0) continue; \
            const int cell = cells[firsts[list * n + row] + rank / PIECE]; \
            const i64 place = (offs[cell / 32] + rank % PIECE / 4) * 128 + cell % 32 * 4 + rank % 4; \
            if (list < last) near[place] = (unsigned short)(code - list * width); \
            else far[place - split] = code; \
            places[first + lane] = place; \
        } \
        __syncwarp(); \
    } \
}
OFFSETS(PIECED)
#define SPREAD(size, type) \
KERNEL spread##size(const i64 *places, const type *in, type *out, i64 n) { \
    EACH(i, n) out[places[i]] = in[i]; \
}
SIZES(SPREAD)
// Where parts of equal cost begin among n slices of cells, whose groups of entries begin at offs; from `first` on.
KERNEL evenly(const i64 *offs, i64 n, i64 parts, i64 first, int *out) {
    const i64 each = 2, all = offs[n] - offs[0] + each * n; /* a slice costs as much as so many groups more */
    EACH(i, parts + 1) {
        const i64 cost = all * i / parts;
        out[i] = (int)(first + passed(n, [&](i64 k) { return offs[k] - offs[0] + each * k < cost; }));
    }
}
