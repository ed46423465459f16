// What is asked of arrays and of the rows of matrices, beside what bytes.cu has, which comes before.

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
extern "C" __global__ void at_once(const __grid_constant__ Entries entries, i64 n) {
    for (i64 i = 0; i < n; i++) {
        const Entry &one = entries.all[i];
        const i64 bytes = one.count ? min(one.bytes, *one.count * one.size) : one.bytes;
        if (one.in) copy_all(one.out, one.in, bytes);
        else set_all(one.out, bytes, 0);
    }
}

// What values are at set bits.
#define WHERE(size, type) \
extern "C" __global__ void where##size(const type *in, const u64 *words, type *out, i64 n) { \
    EACH(i, n) if (words[i >> 6] >> (i & 63) & 1) out[i] = in[i]; \
}
WHERE(1, unsigned char)
WHERE(2, unsigned short)
WHERE(4, unsigned)
WHERE(8, u64)

// How many booleans are true, and how many bits are set.
#define TALLY(name, type, each) \
extern "C" __global__ void name(const type *in, unsigned long long *out, long long n) { \
    unsigned mine = 0; \
    EACH(i, n) mine += each; \
    mine = __reduce_add_sync(~0u, mine); \
    if (threadIdx.x % 32 == 0 && mine) atomicAdd(out, (unsigned long long)mine); \
}
TALLY(truths, unsigned char, in[i] != 0)
TALLY(set_bits, unsigned long long, __popcll(in[i]))
// Flags: whether a row has no entries, and whether two arrays differ in a bit.
#define FLAGS(size, type) \
extern "C" __global__ void empties##size(const type *indptr, long long *out, long long n) { \
    EACH(i, n) if (indptr[i] == indptr[i + 1]) *out = 1; \
} \
extern "C" __global__ void longest##size(const type *indptr, long long *out, long long n) { \
    long long mine = 0; \
    EACH(i, n) mine = max(mine, (long long)(indptr[i + 1] - indptr[i])); \
    if (mine > *(volatile long long *)out) atomicMax(out, mine); \
} \
extern "C" __global__ void differ##size(const type *one, const type *two, long long *out, long long n) { \
    EACH(i, n) if (one[i] != two[i]) *out = 1; \
}
FLAGS(1, unsigned char)
FLAGS(2, unsigned short)
FLAGS(4, unsigned)
FLAGS(8, unsigned long long)

// Lengths of rows, a bit for each that has entries, and how many these are.
#define LENGTHS(size, type) \
extern "C" __global__ void lengths##size(const type *indptr, long long *out, unsigned *bits, \
                                         unsigned long long *count, long long n) { \
    unsigned mine = 0; \
    EACH(i, (n + 63) & ~63ll) { \
        const long long length = i < n ? indptr[i + 1] - indptr[i] : 0; \
        if (length) out[i] = length; \
        const unsigned found = __ballot_sync(~0u, length > 0); \
        if (threadIdx.x % 32 == 0) { \
            bits[i >> 5] = found; \
            mine += __popc(found); \
        } \
    } \
    if (mine) atomicAdd(count, (unsigned long long)mine); \
}
LENGTHS(4, int)
LENGTHS(8, long long)

#define COUNTS(size, type) \
extern "C" __global__ void counts##size(const type *ids, unsigned long long *out, long long step, long long n) { \
    EACH(i, n) atomicAdd(out + ids[i * step], 1ull); \
}
COUNTS(4, int)
COUNTS(8, long long)

// The row of each entry, beside its column if there are any. Two threads find the rows of a tile, the others search
// among these.
template <class Offset> __device__ long long row_of(const Offset *indptr, long long e, long long lo, long long hi) {
    while (hi - lo > 1) {
        const long long middle = (lo + hi) / 2;
        if (indptr[middle] <= e) lo = middle;
        else hi = middle;
    }
    return lo;
}
#define OWNERS(name, Offset, Column) \
extern "C" __global__ void name(const Offset *indptr, long long n, const Column *cols, long long bits, \
                                long long *out, long long total) { \
    __shared__ long long ends[2]; \
    for (long long first = blockIdx.x * 2048ll; first < total; first += gridDim.x * 2048ll) { \
        const long long last = (first + 2048 < total ? first + 2048 : total) - 1; \
        if (threadIdx.x < 2) ends[threadIdx.x] = row_of(indptr, threadIdx.x ? last : first, 0, n); \
        __syncthreads(); \
        for (long long e = first + threadIdx.x; e <= last; e += 256) { \
            const long long row = row_of(indptr, e, ends[0], ends[1] + 1); \
            out[e] = cols ? ((long long)cols[e] << bits) | row : row; \
        } \
        __syncthreads(); \
    } \
}
OWNERS(owners44, int, int)
OWNERS(owners84, long long, int)
OWNERS(owners48, int, long long)
OWNERS(owners88, long long, long long)

// Entries with codes of low .. high - 1, a warp a tile: how many each tile has; and, side by side, what `in` has at
// them, with the place where each row's begin (begins: a bit an entry; ranks: rows that began before each tile).
#define TILES(n) for (long long tile = blockIdx.x * 8ll + threadIdx.x / 32; tile * 1024 < n; tile += gridDim.x * 8ll)
extern "C" __global__ void cut_counts(const int *codes, long long n, long long low, long long high, long long *counts) {
    TILES(n) {
        int found = 0;
        for (int i = threadIdx.x & 31; i < 1024 && tile * 1024 + i < n; i += 32) {
            const int code = codes[tile * 1024 + i];
            found += code >= low && code < high;
        }
        for (int o = 16; o; o >>= 1) found += __shfl_down_sync(~0u, found, o);
        if ((threadIdx.x & 31) == 0) counts[tile] = found;
    }
}
#define CUT(size, type) \
extern "C" __global__ void cut##size(const int *codes, long long n, long long low, long long high, \
                                     const long long *offsets, const type *in, type *out, \
                                     const unsigned char *begins, const int *ranks, long long *firsts) { \
    const unsigned below = (1u << (threadIdx.x & 31)) - 1; \
    TILES(n) { \
        long long place = offsets[tile], row = ranks[tile]; \
        for (int i = 0; i < 1024 && tile * 1024 + i < n; i += 32) { \
            const long long e = tile * 1024 + i + (threadIdx.x & 31); \
            const int code = e < n ? codes[e] : -1; \
            const bool taken = code >= low && code < high, first = e < n && begins[e >> 3] >> (e & 7) & 1; \
            const unsigned all = __ballot_sync(~0u, taken), rows = __ballot_sync(~0u, first); \
            if (taken) out[place + __popc(all & below)] = in[e]; \
            if (first && firsts) firsts[row + __popc(rows & below)] = place + __popc(all & below); \
            place += __popc(all); \
            row += __popc(rows); \
        } \
    } \
}
CUT(1, unsigned char)
CUT(2, unsigned short)
CUT(4, unsigned)
CUT(8, unsigned long long)

// Sums of all numbers before each, and of all: of tiles of 2048 at first, then of the tiles, then within each.
__device__ long long scanned(long long mine, long long *total) {
    __shared__ long long warps[33];
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, count = blockDim.x >> 5;
    long long sum = mine;
    for (int o = 1; o < 32; o <<= 1) {
        const long long other = __shfl_up_sync(~0u, sum, o);
        if (lane >= o) sum += other;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    long long before = 0, all = 0;
    for (unsigned w = 0; w < count; w++) {
        if (w == warp) before = all;
        all += warps[w];
    }
    __syncthreads();
    *total = all;
    return before + sum - mine;
}
extern "C" __global__ void tops(long long *sums, long long n) {
    long long before = 0, total;
    for (long long first = 0; first < n; first += blockDim.x) {
        const long long i = first + threadIdx.x, mine = i < n ? sums[i] : 0;
        const long long upto = scanned(mine, &total);
        if (i < n) sums[i] = before + upto;
        before += total;
    }
}
#define SCAN(size, type) \
extern "C" __global__ void tiles##size(const type *in, long long *sums, long long n) { \
    for (long long tile = blockIdx.x; tile * 2048 < n; tile += gridDim.x) { \
        long long mine = 0, total; \
        for (long long i = tile * 2048 + threadIdx.x; i < n && i < (tile + 1) * 2048; i += 256) mine += in[i]; \
        scanned(mine, &total); \
        if (threadIdx.x == 0) sums[tile] = total; \
    } \
} \
extern "C" __global__ void scan##size(const type *in, const long long *sums, long long *out, long long n) { \
    for (long long tile = blockIdx.x; tile * 2048 < n; tile += gridDim.x) { \
        const long long first = tile * 2048 + threadIdx.x * 8; \
        long long mine = 0, total; \
        for (int k = 0; k < 8; k++) mine += first + k < n ? (long long)in[first + k] : 0; \
        long long upto = sums[tile] + scanned(mine, &total); \
        for (int k = 0; k < 8 && first + k < n; k++) { \
            out[first + k] = upto; \
            upto += in[first + k]; \
        } \
        if (first < n && first + 8 >= n) out[n] = upto; \
    } \
}
SCAN(4, int)
SCAN(8, long long)
extern "C" __global__ void counted(const unsigned *bits, long long *counts, long long n) {
    EACH(i, n) counts[i] = __popc(bits[i]);
}
// Of sorted keys: where those from i << bits on begin; and their lower bits.
#define SORTED(from, Key, to, type) \
extern "C" __global__ void first##from##to(const Key *keys, long long n, long long bits, type *out, long long most) { \
    EACH(i, most) { \
        long long low = 0, high = n; \
        while (low < high) { \
            const long long middle = (low + high) / 2; \
            if (keys[middle] < i << bits) low = middle + 1; \
            else high = middle; \
        } \
        out[i] = (type)low; \
    } \
} \
extern "C" __global__ void low##from##to(const Key *keys, type *out, long long mask, long long n) { \
    EACH(i, n) out[i] = (type)(keys[i] & mask); \
} \
extern "C" __global__ void bent##from##to(const Key *indptr, const type *cols, long long first, long long *out, \
                                          long long n) { \
    EACH(i, n) if (indptr[i] != i || cols[i] != first + i) *out = 1; \
}
SORTED(4, int, 4, int)
SORTED(4, int, 8, long long)
SORTED(8, long long, 4, int)
SORTED(8, long long, 8, long long)

// Rows of at least so many entries, as bits, and how many each 32 rows have; where such rows begin among the entries,
// if that is wanted.
#define BEGUN(size, type) \
extern "C" __global__ void begun##size(const type *indptr, long long n, long long least, unsigned *bits, \
                                       long long *counts, unsigned *begins) { \
    EACH(i, (n + 63) & ~63ll) { \
        const long long first = i < n ? indptr[i] : 0; \
        const bool on = i < n && indptr[i + 1] - first >= least; \
        if (on && begins) atomicOr(begins + (first >> 5), 1u << (first & 31)); \
        const unsigned found = __ballot_sync(~0u, on); \
        if (threadIdx.x % 32 == 0) { \
            bits[i >> 5] = found; \
            counts[i >> 5] = __popc(found); \
        } \
    } \
}
BEGUN(4, int)
BEGUN(8, long long)
__device__ long long bits_before(const unsigned *bits, const long long *upto, long long i, long long n) {
    const long long word = i >> 5;
    return upto[word] + (i < n ? __popc(bits[word] & ((1u << (i & 31)) - 1)) : 0);
}
// Booleans as bits; and, of entries whose bits are set, how many come before some places, and what an array has there.
extern "C" __global__ void packed(const unsigned char *flags, unsigned *bits, long long n) {
    EACH(i, (n + 63) & ~63ll) {
        const unsigned found = __ballot_sync(~0u, i < n && flags[i]);
        if (threadIdx.x % 32 == 0) bits[i >> 5] = found;
    }
}
#define BEFORE(size, type) \
extern "C" __global__ void before##size(const unsigned *bits, const long long *upto, const type *places, \
                                        long long *out, long long n, long long count) { \
    EACH(i, count) out[i] = bits_before(bits, upto, places[i], (n + 31) & ~31ll); /* bits from n on are 0 */ \
}
BEFORE(4, int)
BEFORE(8, long long)
#define KEPT(size, type) \
extern "C" __global__ void kept##size(const unsigned *bits, const long long *upto, const type *in, type *out, \
                                      long long n) { \
    EACH(i, n) if (bits[i >> 5] >> (i & 31) & 1) out[bits_before(bits, upto, i, n)] = in[i]; \
}
KEPT(1, unsigned char)
KEPT(2, unsigned short)
KEPT(4, unsigned)
KEPT(8, unsigned long long)
// What `rows` has (their numbers, if it has nothing) where bits are set.
extern "C" __global__ void listed(const unsigned *bits, const long long *upto, const int *rows, int *out, long long n) {
    EACH(i, n) if (bits[i >> 5] >> (i & 31) & 1) out[bits_before(bits, upto, i, n)] = rows ? rows[i] : (int)i;
}
// Of rows that are long in A or in M: how many pieces the entries of M are; and the row and the first entry of each.
#define LONG_ROWS(size, type) \
extern "C" __global__ void long_counts##size(const type *indptr, const type *mptr, long long n, \
                                             long long least, long long each, long long *counts) { \
    EACH(i, n) { \
        const long long a = indptr[i + 1] - indptr[i], m = mptr[i + 1] - mptr[i]; \
        counts[i] = a && (a >= least || m >= least) ? (m + each - 1) / each : 0; \
    } \
} \
extern "C" __global__ void long_pieces##size(const type *mptr, long long n, long long each, \
                                             const long long *upto, long long *out) { \
    EACH(i, n) \
        for (long long at = upto[i]; at < upto[i + 1]; at++) { \
            out[2 * at] = i; \
            out[2 * at + 1] = mptr[i] + each * (at - upto[i]); \
        } \
}
LONG_ROWS(4, int)
LONG_ROWS(8, long long)
// How many rows whose bits are set begin before each tile.
#define RANKS(size, type) \
extern "C" __global__ void ranks##size(const type *indptr, const unsigned *bits, const long long *upto, int *out, \
                                       long long n, long long tiles) { \
    EACH(t, tiles + 1) { \
        long long low = 0, high = n; \
        while (low < high) { \
            const long long middle = (low + high) / 2; \
            if (indptr[middle] < t * 1024) low = middle + 1; \
            else high = middle; \
        } \
        out[t] = (int)(low < n ? bits_before(bits, upto, low, n) : upto[(n + 31) >> 5]); \
    } \
}
RANKS(4, int)
RANKS(8, long long)
// Bits of rows (all n, if there is no list) join others; how many were not set.
extern "C" __global__ void joined(const int *rows, unsigned *bits, unsigned long long *count, long long n) {
    unsigned mine = 0;
    EACH(i, n) {
        const int row = rows ? rows[i] : (int)i;
        mine += !(atomicOr(bits + (row >> 5), 1u << (row & 31)) >> (row & 31) & 1);
    }
    mine = __reduce_add_sync(~0u, mine);
    if (threadIdx.x % 32 == 0 && mine) atomicAdd(count, (unsigned long long)mine);
}
// Columns with those first in each row that are used most, a warp a row: four of them, by falling counts, from the left
// where these are equal. What they displace goes where they were.
#define USED_FIRST(size, type) \
extern "C" __global__ void used_first##size(const type *indptr, const int *cols, const long long *counts, int *out, \
                                            long long n) { \
    const int lane = threadIdx.x % 32; \
    const unsigned before = (1u << lane) - 1; \
    for (long long row = FIRST / 32; row < n; row += gridDim.x * (long long)blockDim.x / 32) { \
        const long long begin = indptr[row], length = indptr[row + 1] - begin; \
        unsigned long long best[4] = {0, 0, 0, 0}; /* a count above the complement of a place */ \
        for (long long k = lane; k < length; k += 32) { \
            const int col = cols[begin + k]; \
            out[begin + k] = col; \
            unsigned long long key = (unsigned long long)min(counts[col], 0x7fffffffll) << 32 | (unsigned)~k; \
            for (int i = 0; i < 4; i++) { \
                const unsigned long long greater = max(best[i], key); \
                key = min(best[i], key); \
                best[i] = greater; \
            } \
        } \
        const int front = length < 4 ? (int)length : 4; \
        long long place = -1; /* of the one that comes to this lane's place */ \
        for (int i = 0; i < front; i++) { \
            unsigned long long most = best[0]; \
            for (int o = 16; o; o /= 2) most = max(most, __shfl_xor_sync(~0u, most, o)); \
            if (best[0] == most) best[0] = best[1], best[1] = best[2], best[2] = best[3], best[3] = 0; \
            if (lane == i) place = (unsigned)~(unsigned)most; \
        } \
        const bool mine = lane < front; \
        unsigned stay = 0; /* of the first places, those whose columns stay among these */ \
        if (mine && place < front) stay = 1u << place; \
        stay = __reduce_or_sync(~0u, stay); \
        const bool free = mine && place >= front; \
        const unsigned gaps = __ballot_sync(~0u, free), moved = ((1u << front) - 1) & ~stay; \
        int from = 0; \
        for (unsigned left = moved, skip = __popc(gaps & before); left; left &= left - 1, skip--) \
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
USED_FIRST(4, int)
USED_FIRST(8, long long)
// Keys that sort by falling counts, with numbers below; and, of sorted keys, the numbers, the place of each, the sum of
// the first `most` counts, and how many are not 0.
extern "C" __global__ void falling(const long long *counts, long long *keys, long long n) {
    EACH(i, n) keys[i] = (0x7fffffffll - min(counts[i], 0x7fffffffll)) << 32 | i;
}
extern "C" __global__ void ranked(const long long *keys, const long long *counts, int *order, int *place,
                                  unsigned long long *sums, long long most, long long n) {
    EACH(i, n) {
        const int id = (int)keys[i];
        order[i] = id;
        place[id] = (int)i;
        if (i < most) atomicAdd(sums, (unsigned long long)counts[id]);
        if (counts[id] && (i + 1 == n || !counts[(int)keys[i + 1]])) sums[1] = i + 1;
    }
}
// Rows as pieces of at most PIECE entries in lists, as kernels/gpu_slices.py tells: list l has the codes from l * width
// on, the last one all others. Of each list and row: the entries, and the pieces that these are.
const int PIECE = 128, WINDOW = 16384;
__device__ int list_of(int code, long long width, int last) { return (int)min(code / width, (long long)last); }
#define OF_ROWS(row, n) \
    for (long long row = FIRST / 32; row < n; row += gridDim.x * (long long)blockDim.x / 32)
#define LIST_COUNTS(size, type) \
extern "C" __global__ void list_counts##size(const type *indptr, const int *codes, long long n, long long width, \
                                             long long last, int *counts) { \
    const int lane = threadIdx.x % 32; \
    OF_ROWS(row, n) { \
        const long long end = indptr[row + 1]; \
        for (long long first = indptr[row]; first < end; first += 32) { \
            const int list = first + lane < end ? list_of(codes[first + lane], width, (int)last) : -1; \
            const unsigned peers = __match_any_sync(~0u, list); \
            if (list >= 0 && lane == __ffs(peers) - 1) atomicAdd(counts + list * n + row, __popc(peers)); \
        } \
    } \
}
LIST_COUNTS(4, int)
LIST_COUNTS(8, long long)
extern "C" __global__ void piece_counts(const int *counts, int *pieces, long long n) {
    EACH(i, n) pieces[i] = (counts[i] + PIECE - 1) / PIECE;
}
// Keys that sort pieces by window, long ones first, then as they are numbered; and how many pieces a row has in all.
extern "C" __global__ void piece_keys(const int *counts, const long long *firsts, long long *keys, long long n,
                                      long long lists) {
    const long long windows = (n + WINDOW - 1) / WINDOW;
    EACH(i, n * lists) {
        const long long window = i / n * windows + i % n / WINDOW;
        for (long long piece = firsts[i]; piece < firsts[i + 1]; piece++) {
            const long long length = min((long long)PIECE, counts[i] - (piece - firsts[i]) * PIECE);
            keys[piece] = window << 40 | (255 - length) << 32 | piece;
        }
    }
}
extern "C" __global__ void row_pieces(const long long *firsts, int *out, long long n, long long lists) {
    EACH(row, n) {
        long long found = 0;
        for (long long l = 0; l < lists; l++) found += firsts[l * n + row + 1] - firsts[l * n + row];
        out[row] = (int)found;
    }
}
// Of sorted keys: the cell of each piece, what each cell has, and the groups of four entries of each 32 cells. Pieces
// of a window begin with `before` among the sorted, and with `base` among the cells.
extern "C" __global__ void piece_cells(const long long *keys, const long long *before, const long long *base, int *cells,
                                       unsigned char *lengths, int *widths, long long n) {
    EACH(i, n) {
        const long long key = keys[i], window = key >> 40, cell = base[window] + i - before[window];
        const int length = 255 - (int)(key >> 32 & 255);
        cells[(unsigned)key] = (int)cell;
        lengths[cell] = (unsigned char)length;
        if (cell % 32 == 0) widths[cell / 32] = (length + 3) / 4;
    }
}
extern "C" __global__ void row_cells(const long long *firsts, const int *cells, const long long *ptr, int *out,
                                     long long n, long long lists) {
    EACH(row, n) {
        long long at = ptr[row];
        for (long long l = 0; l < lists; l++)
            for (long long piece = firsts[l * n + row]; piece < firsts[l * n + row + 1]; piece++)
                out[at++] = cells[piece];
    }
}
// Where each entry goes: four of a piece side by side, then those of the next cell. The codes of all lists but the last
// one, of 16 bits, end at `split`.
#define PIECED(size, type) \
extern "C" __global__ void pieced##size(const type *indptr, const int *codes, long long n, long long width, \
                                        long long last, const long long *firsts, const int *cells, \
                                        const long long *offs, long long split, unsigned short *near, int *far, \
                                        long long *places) { \
    __shared__ int before[8][32]; \
    const int lane = threadIdx.x % 32; \
    int *mine = before[threadIdx.x / 32]; \
    OF_ROWS(row, n) { \
        const long long end = indptr[row + 1]; \
        mine[lane] = 0; \
        __syncwarp(); \
        for (long long first = indptr[row]; first < end; first += 32) { \
            const int code = first + lane < end ? codes[first + lane] : 0; \
            const int list = first + lane < end ? list_of(code, width, (int)last) : -1; \
            const unsigned peers = __match_any_sync(~0u, list); \
            const int rank = list < 0 ? 0 : mine[list] + __popc(peers & ((1u << lane) - 1)); \
            __syncwarp(); \
            if (list >= 0 && lane == __ffs(peers) - 1) mine[list] += __popc(peers); \
            __syncwarp(); \
            if (list < 0) continue; \
            const int cell = cells[firsts[list * n + row] + rank / PIECE]; \
            const long long place = (offs[cell / 32] + rank % PIECE / 4) * 128 + cell % 32 * 4 + rank % 4; \
            if (list < last) near[place] = (unsigned short)(code - list * width); \
            else far[place - split] = code; \
            places[first + lane] = place; \
        } \
        __syncwarp(); \
    } \
}
PIECED(4, int)
PIECED(8, long long)
#define SPREAD(size, type) \
extern "C" __global__ void spread##size(const long long *places, const type *in, type *out, long long n) { \
    EACH(i, n) out[places[i]] = in[i]; \
}
SPREAD(1, unsigned char)
SPREAD(2, unsigned short)
SPREAD(4, unsigned)
SPREAD(8, unsigned long long)
// Where parts of equal cost begin among n slices of cells, whose groups of entries begin at offs; from `first` on.
extern "C" __global__ void evenly(const long long *offs, long long n, long long parts, long long first, int *out) {
    const long long each = 2, all = offs[n] - offs[0] + each * n; /* a slice costs as much as so many groups more */
    EACH(i, parts + 1) {
        const long long cost = all * i / parts;
        long long low = 0, high = n;
        while (low < high) {
            const long long middle = (low + high) / 2;
            if (offs[middle] - offs[0] + each * middle < cost) low = middle + 1;
            else high = middle;
        }
        out[i] = (int)(first + low);
    }
}
