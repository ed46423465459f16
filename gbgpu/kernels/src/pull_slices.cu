// Rows of a product with a full x, cut into pieces (SELL-C-sigma: Kreutzer, Hager, Wellein, Fehske, Bishop, SIAM J. Sci.
// Comput. 36, 2014). A warp takes a slice of 32 pieces of about the same length, a lane a piece, four entries of each in
// turn. Codes are places in x in the order of use. The first `segments` lists of pieces have codes of one segment of x
// each, which lies in shared memory; the last list has all other codes and reads x in global memory. Each piece leaves
// its sum in a cell of its own; pull_slices_join adds the sums of each row, always in the same order.

template <class T> struct alignas(sizeof(T) * 4 > 16 ? 16 : sizeof(T) * 4) Four { T v[4]; };

template <class T> DEVICE Four<T> read_four(const Four<T> *p) {
    Four<T> four;
    if (sizeof(T) == 1) *(u32 *)&four = __ldcs((const u32 *)p);
    if (sizeof(T) == 2) *(int2 *)&four = __ldcs((const int2 *)p);
    if (sizeof(T) >= 4)
#pragma unroll
        for (int i = 0; i < (int)sizeof(T) / 4; i++)
            ((int4 *)&four)[i] = __ldcs((const int4 *)p + i);
    return four;
}

struct Near {
    const T_B *x;
    DEVICE T_B operator()(u32 code) const { return x[code]; }
};
struct Far {
    const T_B *x;
    DEVICE T_B operator()(u32 code) const { return load(x + code); }
};

const bool EIGHT = sizeof(T_A) > 4 || sizeof(T_B) > 4 || sizeof(Z) > 4;
const int NEAR_GROUPS = EIGHT ? 2 : 4, FAR_GROUPS = 2; // groups of four entries that are under way together
const int BLOCKS = EIGHT ? 4 : 6;

// A slice: its cells, its groups of entries, and how many entries this lane's piece has.
struct Slice {
    i64 at, begin;
    int groups, length;
};

// The next slice that this block takes; at = -1: there is none.
DEVICE Slice next_slice(int *next, int end, const i64 *offs, const unsigned char *lengths) {
    int at = 0;
    if (lane_id() == 0) at = atomicAdd(next, 1);
    at = __shfl_sync(ALL, at, 0);
    Slice slice = {-1, 0, 0, 0};
    if (at >= end) return slice;
    slice.at = at;
    slice.begin = load(offs + at);
    slice.groups = (int)(load(offs + at + 1) - slice.begin);
    slice.begin -= load(offs);
    slice.length = __ldcs(lengths + at * 32LL + lane_id());
    return slice;
}

// The sum of this lane's piece.
template <int EACH, class C, class X>
DEVICE Z sum_piece(const Slice &slice, const C *codes, const T_A *avals, i64 astride, X x) {
    const int whole = __reduce_min_sync(ALL, (u32)slice.length) / 4;
    const i64 at = slice.begin * 32 + lane_id();
    const Four<C> *code_groups = (const Four<C> *)codes + at;
    const Four<T_A> *a_groups = (const Four<T_A> *)avals + at;
    const bool reads = READS_A && astride;
    const T_A a0 = READS_A && !astride ? avals[0] : T_A();
    Z acc = START;
    for (int k = 0; k < slice.groups; k += EACH) {
        Four<C> code[EACH];
        Four<T_A> a[EACH];
        T_B given[EACH][4];
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const bool in = k + j < slice.groups;
            code[j] = in ? read_four(code_groups + (k + j) * 32) : Four<C>();
            if (reads) a[j] = in ? read_four(a_groups + (k + j) * 32) : Four<T_A>();
        }
#pragma unroll
        for (int j = 0; j < EACH; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                given[j][i] = x(code[j].v[i]);
        const bool all = k + EACH <= whole;
#pragma unroll
        for (int j = 0; j < EACH; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const Z t = term(READS_A ? (reads ? a[j].v[i] : a0) : T_A(), given[j][i], 0, 0);
                if (all || (k + j) * 4 + i < slice.length) acc = add(acc, t);
            }
    }
    return acc;
}

KERNEL_1024 pull_slices(const T_B *xvals, i64 nx, i64 width, i64 segments, i64 parts, const i64 *offs,
                        const unsigned char *lengths, const unsigned short *codes, const T_A *avals, i64 astride,
                        const int *cuts, Z *sums) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ int next;
    T_B *segment = (T_B *)shared;
    const Near near = {segment};
    for (i64 s = 0; s < segments; s++) {
        const T_B *from = xvals + s * width;
        const int many = (int)(nx - s * width < width ? nx - s * width : width), packs = many * (int)sizeof(T_B) / 16;
        __syncthreads();
#pragma unroll 4
        for (int i = threadIdx.x; i < packs; i += blockDim.x)
            ((int4 *)segment)[i] = load((const int4 *)from + i);
        for (int i = packs * (16 / (int)sizeof(T_B)) + threadIdx.x; i < many; i += blockDim.x)
            segment[i] = load(from + i);
        for (i64 part = blockIdx.x; part < parts; part += gridDim.x) {
            const int *cut = cuts + s * (parts + 1) + part;
            __syncthreads();
            if (threadIdx.x == 0) next = cut[0];
            const int end = cut[1];
            __syncthreads();
            Slice slice = next_slice(&next, end, offs, lengths);
            while (slice.at >= 0) {
                const Slice then = next_slice(&next, end, offs, lengths);
                sums[slice.at * 32 + lane_id()] = sum_piece<NEAR_GROUPS>(slice, codes, avals, astride, near);
                slice = then;
            }
        }
    }
}

KERNEL_OF(256, BLOCKS) pull_slices_rest(const T_B *xvals, i64 parts, const i64 *offs, const unsigned char *lengths,
                                        const int *codes, const T_A *avals, i64 astride, const int *cuts, Z *sums) {
    __shared__ int next;
    const Far far = {xvals};
    for (i64 part = blockIdx.x; part < parts; part += gridDim.x) {
        __syncthreads();
        if (threadIdx.x == 0) next = cuts[part];
        const int end = cuts[part + 1];
        __syncthreads();
        Slice slice = next_slice(&next, end, offs, lengths);
        while (slice.at >= 0) {
            const Slice then = next_slice(&next, end, offs, lengths);
            sums[slice.at * 32 + lane_id()] = sum_piece<FAR_GROUPS>(slice, codes, avals, astride, far);
            slice = then;
        }
    }
}

// A thread a row; the warp a row of more than NEAR_PIECES. `words`: bits of the rows with entries, `present` of them.
const int NEAR_PIECES = 16;

KERNEL pull_slices_join(i64 n, const i64 *ptr, const int *cells, const Z *sums, T_OUT *out_vals, const i64 *words,
                        i64 *out_words, i64 nwords, i64 *count, i64 present) {
    for (i64 row = thread_id(); row < whole_warps(n); row += thread_count()) {
        const i64 begin = row < n ? load(ptr + row) : 0, end = row < n ? load(ptr + row + 1) : 0;
        const bool many = end - begin > NEAR_PIECES;
        Z acc = START;
        for (i64 k = begin; k < (many ? begin : end); k += 4) {
            Z part[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                part[i] = k + i < end ? load(sums + __ldcs(cells + k + i)) : Z();
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (k + i < end) acc = add(acc, part[i]);
        }
        for (u32 left = __ballot_sync(ALL, many); left; left &= left - 1) {
            const int who = __ffs(left) - 1;
            const i64 first = __shfl_sync(ALL, begin, who), last = __shfl_sync(ALL, end, who);
            Z part = START;
#pragma unroll 4
            for (i64 k = first + lane_id(); k < last; k += 32)
                part = add(part, load(sums + __ldcs(cells + k)));
            for (int o = 16; o; o >>= 1) {
                const Z other = __shfl_xor_sync(ALL, part, o);
                part = add(part, other);
            }
            if ((int)lane_id() == who) acc = part;
        }
        if (end > begin) out_vals[row] = to_out(acc);
    }
    for (i64 w = thread_id(); w < nwords; w += thread_count())
        out_words[w] = words[w];
    if (thread_id() == 0) count[0] += present;
}
