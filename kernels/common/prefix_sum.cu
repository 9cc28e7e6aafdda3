// Prefix sums in two passes: blocks are summed, the host adds the few sums up, and every block is filled in.
#include "common/portable.cuh"

const i64 BLOCK = 64;

// An item is a block of counts.
KERNEL void sum_blocks(i64 begin, i64 end, const i64* counts OF(size), i64* sums OF(items), i64 size) {
    FOR_EACH(block, begin, end) {
        i64 last = minimum((block + 1) * BLOCK, size), sum = 0;
        for (i64 i = block * BLOCK; i < last; ++i) sum += counts[i];
        sums[block] = sum;
    }
}

// ends[i] = counts[0] + ... + counts[i]; sums is now its inclusive prefix sum.
KERNEL void fill_sums(i64 begin, i64 end, const i64* counts OF(size), const i64* sums OF(items), i64* ends OF(size),
                      i64 size) {
    FOR_EACH(block, begin, end) {
        i64 last = minimum((block + 1) * BLOCK, size), sum = block ? sums[block - 1] : 0;
        for (i64 i = block * BLOCK; i < last; ++i) ends[i] = sum += counts[i];
    }
}
