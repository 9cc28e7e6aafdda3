// Prefix sums: what blocks of counts add up to is summed in the same way, and every block filled in from what lies before it.
#include "common/portable.cuh"

const i64 BLOCK = 1024;
const i32 SIDE = 4;

// An item is a block of counts.
KERNEL void sum_blocks(WarpItems items, const i64* counts OF(size), i64* sums OF(items), i64 size) {
    FOR_EACH(block, items) {
        i64 last = minimum((block + 1) * BLOCK, size), sum = 0;
        for (i64 i = block * BLOCK + warp_lane(); i < last; i += WARP_WIDTH) sum += counts[i];
        for (i32 step = 1; step < WARP_WIDTH; step *= 2) sum += warp_shuffle(sum, warp_lane() ^ step);
        if (warp_lane() == 0) sums[block] = sum;
    }
}

// ends[i] = counts[0] + ... + counts[i]; sums is now its inclusive prefix sum. A lane takes SIDE counts side by side.
KERNEL void fill_sums(WarpItems items, const i64* counts OF(size), const i64* sums OF(items), i64* ends OF(size),
                      i64 size) {
    FOR_EACH(block, items) {
        i64 last = minimum((block + 1) * BLOCK, size), before = block ? sums[block - 1] : 0;
        for (i64 first = block * BLOCK; first < last; first += WARP_WIDTH * SIDE) {
            i64 own = first + warp_lane() * SIDE, within[SIDE], all = 0;
            UNROLL for (i32 i = 0; i < SIDE; ++i)
                within[i] = all += own + i < last ? counts[own + i] : 0;
            i64 sum = all;
            for (i32 step = 1; step < WARP_WIDTH; step *= 2) {
                i64 below = warp_shuffle(sum, maximum(warp_lane() - step, 0));
                if (warp_lane() >= step) sum += below;
            }
            UNROLL for (i32 i = 0; i < SIDE; ++i)
                if (own + i < last) ends[own + i] = before + sum - all + within[i];
            before += warp_shuffle(sum, WARP_WIDTH - 1);
        }
    }
}

// An item is a row of as many sums as the others have: the last one.
KERNEL void last_sums(Items items, const i64* ends OF(any), i64* lasts OF(items), i64 row_size) {
    FOR_EACH(row, items) lasts[row] = ends[(row + 1) * row_size - 1];
}
