// Inclusive prefix sums, and counts that are read from their ends. Reduce, then scan: the sums of blocks are scanned in
// the same way, and each block is then scanned from the sum of the blocks before it.
#include "common/portable.cuh"

const i64 BLOCK = 1024;     // counts of an item
const i32 LANE_COUNTS = 4;  // consecutive counts of a lane
// sums[block] = the sum of the block's counts.
KERNEL void reduce_blocks(WarpItems items, const i64* counts OF(size), i64* sums OF(items), i64 size) {
    FOR_EACH(block, items) {
        i64 last = minimum((block + 1) * BLOCK, size), sum = 0;
        for (i64 i = block * BLOCK + warp_lane(); i < last; i += WARP_WIDTH) sum += counts[i];
        for (i32 step = 1; step < WARP_WIDTH; step *= 2) sum += warp_shuffle(sum, warp_lane() ^ step);
        if (warp_lane() == 0) sums[block] = sum;
    }
}

// ends[i] = counts[0] + ... + counts[i]; sums: the inclusive prefix sum of reduce_blocks' result.
KERNEL void scan_blocks(
        WarpItems items, const i64* counts OF(size), const i64* sums OF(items), i64* ends OF(size), i64 size) {
    FOR_EACH(block, items) {
        i64 last = minimum((block + 1) * BLOCK, size), before = block ? sums[block - 1] : 0;
        for (i64 first = block * BLOCK; first < last; first += WARP_WIDTH * LANE_COUNTS) {
            i64 own = first + warp_lane() * LANE_COUNTS, within[LANE_COUNTS], all = 0;
            UNROLL for (i32 i = 0; i < LANE_COUNTS; ++i)
                within[i] = all += own + i < last ? counts[own + i] : 0;
            i64 sum = all;
            for (i32 step = 1; step < WARP_WIDTH; step *= 2) {
                i64 lower = warp_shuffle(sum, maximum(warp_lane() - step, 0));
                if (warp_lane() >= step) sum += lower;
            }
            UNROLL for (i32 i = 0; i < LANE_COUNTS; ++i)
                if (own + i < last) ends[own + i] = before + sum - all + within[i];
            before += warp_shuffle(sum, WARP_WIDTH - 1);
        }
    }
}

// lasts[row] = the last element of each row of `ends`, which has rows of row_size elements.
KERNEL void copy_row_ends(Items items, const i64* ends OF(any), i64* lasts OF(items), i64 row_size) {
    FOR_EACH(row, items) lasts[row] = ends[(row + 1) * row_size - 1];
}

// Clamp the size of a list on the device, where later launches read it. One item. needed: the total of `ends`, the
// inclusive sums of its parts. count: the same if it is within the capacity, else 0, and then owner_count, the count of
// the elements that own the list's, becomes 0 too.
KERNEL void clamp_count(Items items, const i64* ends OF(size), i64* count OF(1), i64* needed OF(1),
        i64* owner_count OF(1), i64 size, i64 capacity) {
    FOR_EACH(item, items) {
        i64 total = size ? ends[size - 1] : 0;
        needed[0] = total;
        count[0] = total <= capacity ? total : 0;
        if (total > capacity) owner_count[0] = 0;
    }
}
