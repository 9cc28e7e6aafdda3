// The seeds of some reads: positions on a grid in both orientations, with their nearest suffixes.
#pragma once
#include "index/suffix_array.cuh"

struct Seeds {
    const i64* offsets OF(selected + 1);  // index of each read's first seed, orientation 0 first
    suffix_t* ranks OF(seeds);            // number of suffixes that sort before the query from the position on
    u16* before OF(seeds);                // bases shared with the suffix at rank - 1
    u16* after OF(seeds);                 // bases shared with the suffix at rank
    i32 stride;                           // bases between positions
};
