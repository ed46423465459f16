#include "monoid.cuh"
#include "short_rows.cuh"

// Products, row by row: each row that the mask lets through gathers its terms. A group of `lanes` lanes takes a row; a
// warp takes at least 8 rows, so that it writes whole bytes of out_words. Rows of at least `limit` entries are left to
// pull_heavy.

struct Terms {
    const IDX *cols;
    const T_A *avals;
    i64 astride;
    const T_B *xvals;
    i64 xstride;
    const i64 *xwords;
    bool full;
    const i64 *starts, *bounds;
    i64 p;

    // Take entry e of the output row with user id `outer`; true if no later one can change the sum.
    DEVICE bool take(i64 e, i64 outer, Z &acc, bool &have) const {
        const i64 k = load(cols + e);
        if (!present(xwords, k, full)) return false;
        have = true;
        if (ISO) return true;
        const T_A a = READS_A ? load(avals + e * astride) : T_A();
        const T_B x = READS_X ? load(xvals + k * xstride) : T_B();
        const Z t = term(a, x, USES_INNER ? user_id(k, starts, bounds, p) : 0, outer);
        acc = IS_ANY ? t : add(acc, t);
        return is_terminal(acc);
    }
};

const bool FIRST_HIT = IS_ANY || ISO; // one term is the sum
const int ALONE = 4;                  // entries that a thread looks at before its warp helps, where a sum may end early
const int ROWS = ISO ? 4 : 2;         // of a thread there, so that many loads are under way

// Sums that end soon: of each row the first entries by one thread, two at a time; the rest of one that did not end by
// its warp. Returns how many rows have a sum.
DEVICE i64 soon_rows(const Terms &terms, i64 n, const PTR *indptr, const i64 *mwords, i64 flags, i64 row0,
                     const i64 *users, T_OUT *out_vals, i64 *out_words, i64 limit, i64 &entries, i64 &probed) {
    i64 found = 0;
    for (i64 first = warp_id() * 32 * ROWS + lane_id(); first < whole_words(n); first += warp_count() * 32 * ROWS) {
        PTR e[ROWS], end[ROWS];
        Z acc[ROWS];
        bool have[ROWS], more = false;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const i64 r = first + 32 * i;
            const bool on = r < n && lets(mwords, r, flags);
            e[i] = on ? load(indptr + r) : 0;
            end[i] = on ? load(indptr + r + 1) : 0;
            acc[i] = START;
            have[i] = false;
            probed += on;
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (end[i] - e[i] >= limit) end[i] = FIRST_HIT ? e[i] + (PTR)limit : e[i];
            more |= e[i] < end[i];
        }
        for (int looked = 0; looked < ALONE && __any_sync(ALL, more); looked += 2) {
            IDX k[ROWS][2];
            u32 bits[ROWS][2];
            T_A a[ROWS][2];
            T_B x[ROWS][2];
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) k[i][j] = j < end[i] - e[i] ? load(terms.cols + e[i] + j) : 0;
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    if (j >= end[i] - e[i]) continue;
                    bits[i][j] = bits_at(terms.xwords, k[i][j], terms.full);
                    if (!ISO && READS_A) a[i][j] = load(terms.avals + ((i64)e[i] + j) * terms.astride);
                    if (!ISO && READS_X) x[i][j] = load(terms.xvals + (i64)k[i][j] * terms.xstride);
                }
            more = false;
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                bool stop = false;
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    if (stop || j >= end[i] - e[i]) continue;
                    entries++;
                    if (!(bits[i][j] >> (k[i][j] & 31) & 1)) continue;
                    have[i] = true;
                    const i64 inner = !ISO && USES_INNER ? user_id(k[i][j], terms.starts, terms.bounds, terms.p) : 0;
                    if (!ISO) {
                        const Z t = term(a[i][j], x[i][j], inner, row_id(first + 32 * i, row0, users));
                        acc[i] = IS_ANY ? t : add(acc[i], t);
                    }
                    stop = ISO || is_terminal(acc[i]);
                }
                e[i] = stop || end[i] - e[i] <= 2 ? end[i] : e[i] + 2;
                more |= e[i] < end[i];
            }
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            for (u32 left = __ballot_sync(ALL, e[i] < end[i]); left; left &= left - 1) {
                const int who = __ffs(left) - 1;
                const i64 last = __shfl_sync(ALL, end[i], who);
                const i64 outer = row_id(first - lane_id() + 32 * i + who, row0, users);
                Z part = START;
                bool some = false, done = false;
                for (i64 at = (i64)__shfl_sync(ALL, e[i], who) + lane_id(); !__any_sync(ALL, done); at += 32) {
                    done = at >= last;
                    if (done) continue;
                    entries++;
                    done = terms.take(at, outer, part, some);
                }
                join_lanes(part, some, 32);
                if ((int)lane_id() == who) join(acc[i], have[i], part, some);
            }
            const i64 r = first + 32 * i;
            if (!ISO && have[i]) out_vals[r] = to_out(acc[i]);
            if (r - lane_id() < whole_words(n)) found += store_bits(out_words, r, have[i]);
        }
    }
    return found;
}

KERNEL pull(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const T_B *xvals, i64 xstride,
            const i64 *xwords, const i64 *mwords, i64 flags, const i64 *starts, const i64 *bounds, i64 row0,
            const i64 *users, const int *heavy, T_OUT *out_vals, i64 *out_words, i64 *count, i64 *stats, i64 p,
            i64 lanes, i64 limit) {
    const Terms terms = {cols, avals, astride, xvals, xstride, xwords, (flags & XFULL) != 0, starts, bounds, p};
    const int width = (int)lanes, sub = lane_id() & (width - 1), group = lane_id() / width, rows = 32 / width,
              tile = rows < 8 ? 8 : rows;
    const u32 group_votes = (width == 32 ? ALL : (1u << width) - 1) << (group * width);
    const bool soon = SOON && width == 1;
    i64 found = 0, entries = 0, probed = 0;
    if (soon)
        found = soon_rows(terms, n, indptr, mwords, flags, row0, users, out_vals, out_words, limit, entries, probed);
    for (i64 first = warp_id() * tile; !soon && first < whole_words(n); first += warp_count() * tile) {
        u32 bits = 0;
        for (int step = 0; step < tile; step += rows) {
            const i64 r = first + step + group;
            i64 e = 0, end = 0;
            if (r < n && lets(mwords, r, flags)) {
                e = load(indptr + r), end = load(indptr + r + 1);
                if (sub == 0) probed++;
                if (end - e >= limit) end = FIRST_HIT ? e + limit : e;
                e += sub;
            }
            Z acc = START;
            bool have = false;
            if (SOON) {
                bool more = e < end;
                while (__any_sync(ALL, more)) {
                    bool stop = false;
                    if (more) {
                        stop = terms.take(e, row_id(r, row0, users), acc, have);
                        e += width;
                        entries++;
                    }
                    const u32 stopped = __ballot_sync(ALL, stop) & group_votes;
                    more = more && !stopped && e < end;
                }
            } else {
#pragma unroll 4
                for (; e < end; e += width) {
                    entries++;
                    terms.take(e, row_id(r, row0, users), acc, have);
                }
            }
            __syncwarp();
            join_lanes(acc, have, width);
            if (!ISO && sub == 0 && have) out_vals[r] = to_out(acc);
            const bool mine = __shfl_sync(ALL, (int)have, lane_id() * width & 31);
            bits |= __ballot_sync(ALL, lane_id() < rows && mine) << step;
        }
        if (lane_id() == 0) {
            found += __popc(bits);
            if (tile == 32) ((u32 *)out_words)[first >> 5] = bits;
            else if (tile == 16) ((unsigned short *)out_words)[first >> 4] = (unsigned short)bits;
            else ((unsigned char *)out_words)[first >> 3] = (unsigned char)bits;
        }
    }
    if (ISO && thread_id() == 0)
        out_vals[0] = to_out(term(READS_A ? avals[0] : T_A(), READS_X ? xvals[0] : T_B(), 0, 0));
    block_add(count, found);
    if (flags & TRACE) {
        block_add(stats, entries);
        block_add(stats + 1, probed);
    }
}

#define SHORT_ROWS(name, plain, blocks) \
    KERNEL_OF(256, blocks) name( \
        i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const T_B *xvals, i64 xstride, \
        const i64 *xwords, const i64 *mwords, i64 flags, const i64 *starts, const i64 *bounds, i64 row0, \
        const i64 *users, const int *heavy, T_OUT *out_vals, i64 *out_words, i64 *count, i64 *stats, i64 p) { \
        const Here x = {xvals, xstride ? (IDX)-1 : (IDX)0}; \
        short_rows<plain>(n, indptr, cols, avals, astride, x, xwords, mwords, flags, starts, bounds, row0, users, \
                          out_vals, out_words, count, stats, p); \
        if (ISO && thread_id() == 0) \
            out_vals[0] = to_out(term(READS_A ? avals[0] : T_A(), READS_X ? xvals[0] : T_B(), 0, 0)); \
    }
SHORT_ROWS(pull_short, false, 4)
SHORT_ROWS(pull_short_plain, true, sizeof(Z) + sizeof(PTR) <= 8 ? 8 : 5)

// The long rows, after pull has written all words. A block looks which of its share are left to do (where one term is
// enough, pull has looked at the first `limit` entries, which mostly have it), then takes these one by one.
KERNEL pull_heavy(i64 n, const PTR *indptr, const IDX *cols, const T_A *avals, i64 astride, const T_B *xvals,
                  i64 xstride, const i64 *xwords, const i64 *mwords, i64 flags, const i64 *starts, const i64 *bounds,
                  i64 row0, const i64 *users, const int *heavy, T_OUT *out_vals, i64 *out_words, i64 *count, i64 *stats,
                  i64 p, i64 limit, i64 heavies) {
    __shared__ int todo[256];
    __shared__ u32 left;
    const Terms terms = {cols, avals, astride, xvals, xstride, xwords, (flags & XFULL) != 0, starts, bounds, p};
    const i64 each = (heavies + gridDim.x - 1) / gridDim.x, share = each < 256 ? each : 256;
    i64 found = 0, entries = 0;
    for (i64 first = blockIdx.x * share; first < heavies; first += gridDim.x * share) {
        if (threadIdx.x == 0) left = 0;
        __syncthreads();
        if (threadIdx.x < share && first + threadIdx.x < heavies) {
            const int r = load(heavy + first + threadIdx.x);
            if (lets(mwords, r, flags) && !(FIRST_HIT && bit(out_words, r))) todo[atomicAdd(&left, 1u)] = r;
        }
        __syncthreads();
        for (u32 i = 0; i < left; i++) {
            const i64 r = todo[i], end = load(indptr + r + 1);
            i64 e = load(indptr + r) + (FIRST_HIT ? limit : 0) + threadIdx.x;
            Z acc = START;
            bool have = false;
            if (SOON) {
                for (i64 base = e - threadIdx.x; base < end; base += blockDim.x, e += blockDim.x) {
                    const bool on = e < end, stop = on && terms.take(e, row_id(r, row0, users), acc, have);
                    entries += on;
                    if (__syncthreads_or(stop)) break;
                }
            } else {
#pragma unroll 4
                for (; e < end; e += blockDim.x) {
                    entries++;
                    terms.take(e, row_id(r, row0, users), acc, have);
                }
            }
            join_block(acc, have);
            if (threadIdx.x == 0 && have) {
                if (!ISO) out_vals[r] = to_out(acc);
                mark(out_words, r);
                found++;
            }
        }
        __syncthreads();
    }
    block_add(count, found);
    if (flags & TRACE) block_add(stats, entries);
}
