// The longest common prefixes (LCP) of neighbours in the suffix array, under a pyramid of minima for nearest smaller
// values: level 0 is the LCP array, an entry of a higher level the minimum of GROUP entries of the level below.
#pragma once
#include "common/portable.cuh"

const i64 GROUP = 32;

struct LcpPyramid {
    const u32* values OF(any);
    const i64* offsets OF(any);  // the start of each level, then the end of the last
    HOST_DEVICE const u32* level(i32 number) const { return values + offsets[number]; }
    HOST_DEVICE i64 size(i32 number) const { return offsets[number + 1] - offsets[number]; }
    // Return the last index before `index` whose value is less than `bound`; else 0, whose value is 0.
    HOST_DEVICE i64 previous_smaller(i64 index, u32 bound) const {
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
    // Return the first index not before `index` whose value is less than `bound`, or the number of values.
    HOST_DEVICE i64 next_smaller(i64 index, u32 bound) const {
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
