// Checksums of arrays, a block each, by which a loading finds what was altered.
//
// Of words w[0], w[1], ... a block's is the sum of scramble(w[i] + i * STEP). That is one-to-one, so any change within a
// word is found; another one is missed by chance, once in 2^64. A sum may be added up in any order.
#include "common/portable.cuh"

const i64 BLOCK = 1 << 22;  // bytes

// Bytes of an item: few enough for all threads to have some, enough for its addition to the sum to count little.
const i64 RUN = 1 << 15;

const u64 STEP = 0x9E3779B97F4A7C15ull;

HOST_DEVICE u64 scramble(u64 x) {
    x *= 0xBF58476D1CE4E5B9ull;
    return x ^ x >> 32;
}

// An item is RUN bytes of the array. Behind its end the last word is 0.
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
