// What every kernel uses: types, bits of presence words, masks, appends, sums over a block, user ids.
// Words are int64 in the contract; bits are read and written through their 32-bit halves (little endian).

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

#define DEVICE __device__ __forceinline__
#ifdef RESIDENT // parts of one kernel, as kernels/resident.py tells
#define KERNEL_OF(...) DEVICE void
#else
#define KERNEL_OF(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
#endif
#define KERNEL KERNEL_OF(256)
#define KERNEL_1024 KERNEL_OF(1024)

// Literals of operators that are no numbers.
#define __builtin_nanf(text) __int_as_float(0x7fc00000)
#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000LL)
#define __builtin_huge_valf() __int_as_float(0x7f800000)
#define __builtin_huge_val() __longlong_as_double(0x7ff0000000000000LL)

const u32 ALL = 0xffffffffu;

DEVICE u32 lane_id() { return threadIdx.x & 31; }
// A kernel that stays waits for one thing after the other: what may be wanted is read ahead.
#ifdef RESIDENT
const bool AHEAD = true;
DEVICE i64 warp_id() { return blockIdx.x + (i64)gridDim.x * (threadIdx.x >> 5); } // a short list goes to all processors
#else
const bool AHEAD = false;
DEVICE i64 warp_id() { return (blockIdx.x * (i64)blockDim.x + threadIdx.x) >> 5; }
#endif
DEVICE i64 thread_id() { return warp_id() * 32 + lane_id(); }
DEVICE i64 thread_count() { return gridDim.x * (i64)blockDim.x; }
DEVICE i64 warp_count() { return thread_count() >> 5; }
DEVICE u32 lanes_below() { return (1u << lane_id()) - 1; }

// Loops whose bodies vote run whole warps: up to a multiple of 32, or of 64 where they write all words.
DEVICE i64 whole_warps(i64 n) { return (n + 31) & ~31LL; }
DEVICE i64 whole_words(i64 n) { return (n + 63) & ~63LL; }

// Each thread takes rows `first` and `first + 32` of a word of 64, so that the loads of both are under way at once (one
// load of 4 bytes a thread leaves the memory waiting). Warps stay whole.
#define EACH_PAIR(first, n) \
    for (i64 first = warp_id() * 64 + lane_id(), stop = whole_words(n), step = warp_count() * 64; \
         first < stop; first += step)

// Data that no running kernel writes goes through the read-only cache.
#ifdef RESIDENT
template <class T> DEVICE T load(const T *p) { return *p; }
#else
template <class T> DEVICE T load(const T *p) { return __ldg(p); }
DEVICE bool load(const bool *p) { return __ldg((const signed char *)p) != 0; }
#endif

DEVICE bool bit(const i64 *words, i64 r) { return ((const u32 *)words)[r >> 5] >> (r & 31) & 1; }

// Set bit r; true if it was clear. The read first saves most atomics: bits are only ever set while a kernel runs, so
// it may come from the cache next to the threads, where many that look at one word do not queue.
DEVICE u32 marks_at(const i64 *words, i64 r) { return __ldca((const u32 *)words + (r >> 5)); }
DEVICE bool mark(i64 *words, i64 r, u32 seen) {
    const u32 b = 1u << (r & 31);
    return !(seen & b) && !(atomicOr((u32 *)words + (r >> 5), b) & b);
}
DEVICE bool mark(i64 *words, i64 r) { return mark(words, r, AHEAD ? 0 : marks_at(words, r)); }

// The 32 bits around row r's, to be looked at later: a load that nothing waits for yet.
DEVICE u32 bits_at(const i64 *words, i64 r, bool full) { return full ? ALL : ((const u32 *)words)[r >> 5]; }

DEVICE bool lets(const i64 *mwords, i64 r, i64 flags) {
    return !(flags & MASKED) || bit(mwords, r) != ((flags & COMPLEMENT) != 0);
}

DEVICE bool present(const i64 *words, i64 r, bool full) { return full || bit(words, r); }

// The warp's votes are the bits of rows r - lane .. r - lane + 31. Returns how many there are, on lane 0.
DEVICE i64 store_bits(i64 *words, i64 r, bool on) {
    const u32 votes = __ballot_sync(ALL, on);
    if (lane_id() != 0) return 0;
    ((u32 *)words)[r >> 5] = votes;
    return __popc(votes);
}

DEVICE i64 count_bits(bool on) {
    const u32 votes = __ballot_sync(ALL, on);
    return lane_id() == 0 ? __popc(votes) : 0;
}

// A place in a list for every lane that asks: one atomic a warp.
DEVICE i64 append(bool on, i64 *count) {
    const u32 votes = __ballot_sync(ALL, on);
    if (!votes) return 0;
    const int leader = __ffs(votes) - 1;
    u64 base = 0;
    if (lane_id() == leader) base = atomicAdd((u64 *)count, (u64)__popc(votes));
    return (i64)__shfl_sync(ALL, base, leader) + __popc(votes & lanes_below());
}

// Inclusive prefix sum over the lanes of a warp.
template <class T> DEVICE T inclusive_sum(T v) {
    for (int o = 1; o < 32; o <<= 1) {
        const T below = __shfl_up_sync(ALL, v, o);
        if (lane_id() >= o) v += below;
    }
    return v;
}

// target += sum of v over the block. Every thread calls.
DEVICE void block_add(i64 *target, i64 v) {
    __shared__ i64 parts[32];
    for (int o = 16; o; o >>= 1)
        v += __shfl_down_sync(ALL, v, o);
    if (lane_id() == 0) parts[threadIdx.x >> 5] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (u32 w = 1; w < blockDim.x >> 5; w++)
            v += parts[w];
        if (v) atomicAdd((u64 *)target, (u64)v);
    }
    __syncthreads();
}

// The place of the last of ascending numbers low .. high - 1 that is at most x; `low` if none is.
template <class T> DEVICE i64 last_upto(const T *numbers, i64 low, i64 high, i64 x) {
    while (high - low > 1) {
        const i64 middle = (low + high) >> 1;
        if (load(numbers + middle) <= x) low = middle;
        else high = middle;
    }
    return low;
}

// The place of the first of ascending numbers low .. high - 1 that is at least x; `high` if none is.
template <class T> DEVICE i64 lower_bound(const T *numbers, i64 low, i64 high, i64 x) {
    while (low < high) {
        const i64 middle = (low + high) >> 1;
        if (load(numbers + middle) < x) low = middle + 1;
        else high = middle;
    }
    return low;
}

// The block b with starts[b] <= slot < starts[b + 1]; empty blocks are passed over.
DEVICE i64 block_of(i64 slot, const i64 *starts, i64 p) { return last_upto(starts, 0, p, slot); }

// Slots and rows -> user ids, as kernels/interface.py tells.
DEVICE i64 user_id(i64 slot, const i64 *starts, const i64 *bounds, i64 p) {
    if (p == 1) return slot;
    if (p == 0) return load(bounds + slot);
    const i64 b = block_of(slot, starts, p);
    return load(bounds + b) + slot - load(starts + b);
}

DEVICE i64 row_id(i64 r, i64 row0, const i64 *users) {
    return row0 >= 0 ? row0 + r : load(users + (row0 + r + (1LL << 62)));
}
