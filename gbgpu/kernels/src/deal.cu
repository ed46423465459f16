// Rows of a frontier are cut so that its owner keeps the first ones, up to the mean of all devices, and those that have
// less get the next ones, by what they lack. All compute the same from the same numbers, so that each row is one's. Within
// a group edges are taken to lie evenly.
KERNEL deal(i64 n, const i64 *loads, i64 p, i64 owner, i64 taker, i64 least, i64 shift, i64 *out_cuts) {
    if (blockIdx.x) return;
    __shared__ i64 sums[32];
    double mean = 0, lacking = 0, before = 0, upto = 0; // what is lacking: of all, of those before the taker, and with it
    for (i64 d = 0; d < p; d++)
        mean += (double)loads[d * (1 + n)] / (double)p;
    for (i64 d = 0; d < p; d++) {
        if (d == taker) before = lacking;
        lacking += fmax(mean - (double)loads[d * (1 + n)], 0.0);
        if (d == taker) upto = lacking;
    }
    const i64 *edges = loads + owner * (1 + n) + 1;
    const double own = (double)edges[-1], away = own - mean > (double)least && lacking > 0 ? own - mean : 0;
    const bool mine = taker == owner, none = away == 0 && !mine;
    const i64 each = (n + blockDim.x - 1) / blockDim.x, first = threadIdx.x * each, last = min(first + each, n);
    i64 here = 0;
    for (i64 g = first; g < last; g++)
        here += edges[g];
    i64 end = inclusive_sum(here);
    if (lane_id() == 31) sums[threadIdx.x >> 5] = end;
    __syncthreads();
    for (u32 w = 0; w < threadIdx.x >> 5; w++)
        end += sums[w];
    for (int side = 0; side < 2; side++) {
        const double x = side == 0 ? before : mine ? 0 : upto;
        const double cut = away == 0 || x >= lacking ? own : own - away + away * (x / lacking);
        const bool bottom = none || mine && side == 0; // the first row, else the end of all
        if (threadIdx.x == 0 && (bottom || !(cut < own))) out_cuts[side] = bottom ? 0 : 1LL << 62;
        if (bottom || !((double)(end - here) <= cut && cut < (double)end && cut < own)) continue;
        double left = cut - (double)(end - here);
        for (i64 g = first; g < last; g++) {
            if (left < (double)edges[g]) {
                out_cuts[side] = (g << shift) + (i64)(left / (double)edges[g] * (double)(1LL << shift));
                break;
            }
            left -= (double)edges[g];
        }
    }
}
