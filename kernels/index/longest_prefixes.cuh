// The common prefixes of neighbours in the suffix array (LCP) under a pyramid of minima: level 0 are the prefixes, and an
// entry of a level above is the smallest of GROUP entries of the one below. It answers which is the nearest smaller one.
#pragma once
#include "common/portable.cuh"

const i64 GROUP = 32;

struct Pyramid {
    const u32* values OF(any);
    const i64* offsets OF(any);  // where each level begins, and behind the last one its end

    HOST_DEVICE const u32* level(i32 number) const { return values + offsets[number]; }
    HOST_DEVICE i64 size(i32 number) const { return offsets[number + 1] - offsets[number]; }

    // The last index in front of `index` whose value is less than `bound`; 0, whose value is 0, where there is none.
    HOST_DEVICE i64 before(i64 index, u32 bound) const {
        i32 number = 0;
        while (true) {
            const u32* values = level(number);
            while (index % GROUP && values[index - 1] >= bound) --index;
            if (index == 0) return 0;
            if (index % GROUP) break;
            index /= GROUP, ++number;
        }
        --index;
        while (number) {
            --number;
            index = index * GROUP + GROUP - 1;
            while (level(number)[index] >= bound) --index;
        }
        return index;
    }
    // The first index from `index` on whose value is less than `bound`; the number of values where there is none.
    HOST_DEVICE i64 from(i64 index, u32 bound) const {
        i32 number = 0;
        while (true) {
            const u32* values = level(number);
            i64 end = minimum((index + GROUP - 1) / GROUP * GROUP, size(number));
            while (index < end && values[index] >= bound) ++index;
            if (index < end) break;
            if (index == size(number)) return size(0);
            index /= GROUP, ++number;
        }
        while (number) {
            --number;
            index *= GROUP;
            while (level(number)[index] >= bound) ++index;
        }
        return index;
    }
};
