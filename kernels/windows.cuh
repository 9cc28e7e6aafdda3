// A window: a place in the reference where a read may belong, as a band of diagonals.
#pragma once
#include "portable.cuh"

struct Window {
    i64 diagonal;     // of its best ungapped segment: reference position minus query position
    i32 score;        // of that segment, bonuses included; replaced by the banded alignment's where that is higher
    i32 ungapped;     // of that segment
    i32 begin, end;   // that segment in the oriented query
    i32 low, high;    // further diagonals with seeds, relative to `diagonal`: low <= 0 <= high
    i32 orientation;
    i32 align;        // 1 where a banded alignment may score higher
};
