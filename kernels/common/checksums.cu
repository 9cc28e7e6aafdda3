// Checksums of the blocks of an array, to detect altered index files.
//
// The checksum of a block of words w[0], w[1], ... is the sum of scramble(w[i] + i * STEP), in any order. scramble is
// one-to-one, so every change of a single word is detected; other changes are missed with a probability of 2^-64.
#include "common/portable.cuh"

const i64 BLOCK = 1 << 22;  // bytes
// Bytes of an item: few enough to occupy all threads, enough to make the cost of the atomic addition negligible.
const i64 RUN = 1 << 15;
const u64 STEP = 0x9E3779B97F4A7C15ull;
// Return a word mixed by a one-to-one function.
HOST_DEVICE u64 scramble(u64 x) {
    x *= 0xBF58476D1CE4E5B9ull;
    return x ^ x >> 32;
}

// Add the checksum of each run of RUN bytes (an item) to the sum of its block. The last word is padded with 0.
KERNEL void sum_runs(WarpItems items, const u8* bytes OF(size), u64* sums OF((size + BLOCK - 1) / BLOCK), i64 size) {
    FOR_EACH(run, items) {
        const u8* own = bytes + run * RUN;
        i64 count = minimum(RUN, size - run * RUN), words = count / 8;
        u64 sum = 0, first = (u64)(run * RUN % BLOCK / 8);
        for (i64 i = warp_lane(); i < words; i += WARP_WIDTH)
            sum += scramble(load_u64(own + 8 * i) + (first + (u64)i) * STEP);
        if (count % 8 && warp_lane() == 0) {
            u64 last = 0;
            for (i64 i = count - 1; i >= 8 * words; --i) last = last << 8 | own[i];
            sum += scramble(last + (first + (u64)words) * STEP);
        }
        atomic_add(&sums[run * RUN / BLOCK], sum);
    }
}
