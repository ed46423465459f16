// Copies, constants, and what ids name. RESIDENT: as parts of one kernel (gbgpu/kernels/resident.py), in which short
// work goes to all multiprocessors, and work on a `few` bytes is one thread's.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned u32;
#define DEVICE __device__ __forceinline__
#ifdef RESIDENT
#define KERNEL DEVICE void
#define FIRST ((blockIdx.x + (i64)gridDim.x * (threadIdx.x >> 5)) * 32 + (threadIdx.x & 31))
#else
#define KERNEL extern "C" __global__ void
#define FIRST (blockIdx.x * (i64)blockDim.x + threadIdx.x)
#endif
#define EACH(i, n) for (i64 i = FIRST; i < (n); i += gridDim.x * (i64)blockDim.x)
#define LANE (threadIdx.x & 31)

// Inclusive prefix sum over the lanes of a warp.
template <class T> DEVICE T inclusive_sum(T v) {
    for (int o = 1; o < 32; o <<= 1) {
        const T below = __shfl_up_sync(~0u, v, o);
        if (LANE >= o) v += below;
    }
    return v;
}

// Tiles of 1024 entries, a warp a tile: how many entries e of each are on(e), and put(e, place) for each of these, in
// their order, from offsets[tile] on.
#define TILES(n) for (i64 tile = FIRST >> 5; tile * 1024 < (n); tile += gridDim.x * (i64)blockDim.x >> 5)
template <class On> DEVICE void tile_counts(i64 n, i64 *counts, On on) {
    TILES(n) {
        int found = 0;
        for (i64 e = tile * 1024 + LANE; e < n && e < (tile + 1) * 1024; e += 32) found += on(e);
        found = __reduce_add_sync(~0u, found);
        if (LANE == 0) counts[tile] = found;
    }
}
template <class On, class Put> DEVICE void each_kept(i64 n, const i64 *offsets, On on, Put put) {
    TILES(n) {
        i64 place = offsets[tile];
        for (i64 first = tile * 1024; first < n && first < (tile + 1) * 1024; first += 32) {
            const i64 e = first + LANE;
            const bool mine = e < n && on(e);
            const u32 all = __ballot_sync(~0u, mine);
            if (mine) put(e, place + __popc(all & ((1u << LANE) - 1)));
            place += __popc(all);
        }
    }
}

DEVICE void set_all(unsigned char *out, i64 n, i64 byte) {
    if ((u64)out & 15) {
        EACH(i, n) out[i] = (unsigned char)byte;
        return;
    }
    const int word = 0x01010101 * (int)(byte & 255);
    EACH(i, n >> 4) ((int4 *)out)[i] = make_int4(word, word, word, word);
    EACH(i, n & 15) out[(n & ~15ll) + i] = (unsigned char)byte;
}
KERNEL set_bytes(unsigned char *out, i64 n, i64 byte) { set_all(out, n, byte); }
DEVICE void copy_all(unsigned char *out, const unsigned char *in, i64 n) {
    if (((u64)out | (u64)in) & 3) {
        EACH(i, n) out[i] = in[i];
        return;
    }
    if (((u64)out | (u64)in) & 15) {
        EACH(i, n >> 2) ((u32 *)out)[i] = ((const u32 *)in)[i];
        EACH(i, n & 3) out[(n & ~3ll) + i] = in[(n & ~3ll) + i];
        return;
    }
    EACH(i, n >> 4) ((int4 *)out)[i] = ((const int4 *)in)[i];
    EACH(i, n & 15) out[(n & ~15ll) + i] = in[(n & ~15ll) + i];
}
KERNEL copy_bytes(unsigned char *out, const unsigned char *in, i64 n) { copy_all(out, in, n); }
KERNEL set_few(unsigned char *out, i64 n, i64 byte) {
    for (i64 i = 0; i < n; i++)
        out[i] = (unsigned char)byte;
}
KERNEL copy_few(unsigned char *out, const unsigned char *in, i64 n) {
    if (((u64)out | (u64)in | n) & 7)
        for (i64 i = 0; i < n; i++)
            out[i] = in[i];
    else
        for (i64 i = 0; i < n >> 3; i++)
            ((u64 *)out)[i] = ((const u64 *)in)[i];
}
template <class T> DEVICE void fill(T *out, T value, i64 n) {
    EACH(i, n) out[i] = value;
}
KERNEL fill1(unsigned char *out, unsigned char value, i64 n) { fill(out, value, n); }
KERNEL fill2(unsigned short *out, unsigned short value, i64 n) { fill(out, value, n); }
KERNEL fill4(u32 *out, u32 value, i64 n) { fill(out, value, n); }
KERNEL fill8(u64 *out, u64 value, i64 n) { fill(out, value, n); }

template <class T> DEVICE void copy_counted(T *out, const T *in, const i64 *count, i64 n) {
    const i64 end = count[0] < n ? count[0] : n;
    EACH(i, end) out[i] = in[i];
}
KERNEL copy1(unsigned char *out, const unsigned char *in, const i64 *count, i64 n) { copy_counted(out, in, count, n); }
KERNEL copy2(unsigned short *out, const unsigned short *in, const i64 *count, i64 n) {
    copy_counted(out, in, count, n);
}
KERNEL copy4(u32 *out, const u32 *in, const i64 *count, i64 n) { copy_counted(out, in, count, n); }
KERNEL copy8(u64 *out, const u64 *in, const i64 *count, i64 n) { copy_counted(out, in, count, n); }

// An id of any type of integers: `code` is its size in bytes, negative if it is signed. One above 2**63 is negative.
DEVICE i64 id_at(const void *ids, i64 code, i64 i) {
    switch (code) {
    case -1: return ((const signed char *)ids)[i];
    case -2: return ((const short *)ids)[i];
    case -4: return ((const int *)ids)[i];
    case 1: return ((const unsigned char *)ids)[i];
    case 2: return ((const unsigned short *)ids)[i];
    case 4: return ((const u32 *)ids)[i];
    default: return ((const i64 *)ids)[i];
    }
}
// Ids as slots, -1 for those that are not from 0 to n - 1; `bad` tells of such.
template <class T> DEVICE void checked(const void *ids, i64 code, i64 count, i64 n, T *slots, i64 *bad) {
    EACH(i, count) {
        const i64 id = id_at(ids, code, i);
        const bool in = id >= 0 && id < n;
        if (!in) *bad = 1;
        slots[i] = in ? (T)id : (T)-1;
    }
}
KERNEL checked4(const void *ids, i64 code, i64 count, i64 n, int *slots, i64 *bad) {
    checked(ids, code, count, n, slots, bad);
}
KERNEL checked8(const void *ids, i64 code, i64 count, i64 n, i64 *slots, i64 *bad) {
    checked(ids, code, count, n, slots, bad);
}
// What stands at ids; anything at bad ones.
template <class T> DEVICE void take(const void *ids, i64 code, i64 count, i64 n, const T *vals, T *out, i64 *bad) {
    EACH(i, count) {
        const i64 id = id_at(ids, code, i);
        const bool in = id >= 0 && id < n;
        if (!in) *bad = 1;
        out[i] = vals[in ? id : 0];
    }
}
KERNEL take1(const void *ids, i64 code, i64 count, i64 n, const unsigned char *vals, unsigned char *out, i64 *bad) {
    take(ids, code, count, n, vals, out, bad);
}
KERNEL take2(const void *ids, i64 code, i64 count, i64 n, const unsigned short *vals, unsigned short *out, i64 *bad) {
    take(ids, code, count, n, vals, out, bad);
}
KERNEL take4(const void *ids, i64 code, i64 count, i64 n, const u32 *vals, u32 *out, i64 *bad) {
    take(ids, code, count, n, vals, out, bad);
}
KERNEL take8(const void *ids, i64 code, i64 count, i64 n, const u64 *vals, u64 *out, i64 *bad) {
    take(ids, code, count, n, vals, out, bad);
}
// Values of another owner, whose slots begin with `first`, into a vector over all slots.
template <class T> DEVICE void fetch(const void *ids, i64 code, i64 n, i64 first, const T *vals, T *out) {
    EACH(i, n) {
        const i64 slot = id_at(ids, code, i);
        out[slot] = vals[slot - first];
    }
}
KERNEL fetch1(const void *ids, i64 code, i64 n, i64 first, const unsigned char *vals, unsigned char *out) {
    fetch(ids, code, n, first, vals, out);
}
KERNEL fetch2(const void *ids, i64 code, i64 n, i64 first, const unsigned short *vals, unsigned short *out) {
    fetch(ids, code, n, first, vals, out);
}
KERNEL fetch4(const void *ids, i64 code, i64 n, i64 first, const u32 *vals, u32 *out) {
    fetch(ids, code, n, first, vals, out);
}
KERNEL fetch8(const void *ids, i64 code, i64 n, i64 first, const u64 *vals, u64 *out) {
    fetch(ids, code, n, first, vals, out);
}
