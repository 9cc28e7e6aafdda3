// The seeds of some reads: nearest suffixes of positions on a grid of both orientations.
#pragma once
#include "index/suffix_array.cuh"

struct Seeds {
    const i64* offsets OF(selected + 1);  // where each read's seeds begin, those of orientation 0 first
    suffix_t* ranks OF(seeds);            // how many suffixes sort before the query from the position on
    u16* before OF(seeds);                // bases shared with the suffix at rank - 1
    u16* after OF(seeds);                 // and with that at rank
    i32 stride;                           // bases between positions
};
