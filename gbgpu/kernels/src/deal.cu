// Evenly spread places go to one device after the other, as where the host deals (arrays.cu): number 39 k, modulo 64, is
// the k-th, and they are turned by another number for each 64.
// All devices compute the same from the same numbers, so that each entry is taken once.
DEVICE u64 turned(u64 mine, i64 group) {
    const u32 by = (u32)group * 0x9E3779B9u >> 26;
    return mine << by | mine >> (64 - by & 63);
}
KERNEL deal(const i64 *count, const IDX *slots, const T_B *xvals, i64 xstride, const i64 *loads, i64 p, i64 owner,
            i64 taker, i64 least, IDX *out_slots, T_B *out_vals, i64 *out_count) {
    double mean = 0, lacking = 0, before = 0, upto = 0; // what is lacking: of all, of those before the taker, and with it
    for (i64 d = 0; d < p; d++)
        mean += (double)loads[d] / (double)p;
    for (i64 d = 0; d < p; d++) {
        if (d == taker) before = lacking;
        lacking += fmax(mean - (double)loads[d], 0.0);
        if (d == taker) upto = lacking;
    }
    const double own = (double)loads[owner];
    const double away = own - mean > (double)least && lacking > 0 ? 64 * (own - mean) / own : 0; // of every 64 places
    i64 low = (i64)rint(away), high = 64;
    if (taker != owner) {
        low = away > 0 ? (i64)rint(away * (before / lacking)) : 0;
        high = away > 0 ? (i64)rint(away * (upto / lacking)) : 0;
    }
    const i64 k = lane_id() * 23 & 63, other = k + 32 * 23 & 63; // 23 * 39 = 1
    const bool on = low <= k && k < high, too = low <= other && other < high;
    const u32 first = __ballot_sync(ALL, on), second = __ballot_sync(ALL, too);
    const u64 mine = first | (u64)second << 32;
    const i64 total = count[0], each = __popcll(mine);
    for (i64 q = thread_id(); q < total; q += thread_count()) {
        const u64 place = 1ull << (q & 63), these = turned(mine, q >> 6);
        if (!(these & place)) continue;
        const i64 at = (q >> 6) * each + __popcll(these & (place - 1));
        out_slots[at] = slots[q];
        if (xstride) out_vals[at] = xvals[q];
    }
    const u64 rest = (1ull << (total & 63)) - 1;
    if (thread_id() == 0) out_count[0] = (total >> 6) * each + __popcll(turned(mine, total >> 6) & rest);
}
