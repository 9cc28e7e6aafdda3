// A window: a place in the reference where a read may belong, as a band of diagonals.
#pragma once
#include "portable.cuh"

// The diagonals of a banded alignment. A single diagonal needs room for indels that no seed has shown, several for what
// lies between them too, and in a long read differences of length add up.
enum BandKind { NO_BAND = 0, NARROW_BAND = 1, MIDDLE_BAND = 2, WIDE_BAND = 3 };

const i32 NARROW_SPREAD = 8;  // diagonals between a window's outermost ones that a narrow band still takes
const i32 LONG_READ = 512;

HOST_DEVICE i32 band_width(i32 kind) { return kind == WIDE_BAND ? 256 : kind == MIDDLE_BAND ? 64 : 32; }

HOST_DEVICE BandKind band_kind(i32 length, i32 spread) {
    return length > LONG_READ ? WIDE_BAND : spread > NARROW_SPREAD ? MIDDLE_BAND : NARROW_BAND;
}

struct Window {
    i64 diagonal;     // of its best ungapped segment: reference position minus query position
    i32 score;        // of that segment, bonuses included; replaced by the banded alignment's where that is higher
    i32 ungapped;     // of that segment
    i32 begin, end;   // that segment in the oriented query
    i32 low, high;    // further diagonals with seeds, relative to `diagonal`: low <= 0 <= high
    i32 orientation;
    i32 band;         // a BandKind; NO_BAND where no banded alignment may score higher
};
