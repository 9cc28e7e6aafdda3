// A window: a place in the reference where a read may belong, as a band of diagonals.
#pragma once
#include "common/portable.cuh"

// The diagonals of a banded alignment. A single diagonal needs room for indels that no seed has shown, several for what
// lies between them too, and in a long read differences of length add up. Only wider bands have long gaps that cost less
// than their length; in the others there is hardly room for one.
enum BandKind { NO_BAND = 0, NARROW_BAND = 1, MIDDLE_BAND = 2, WIDE_BAND = 3, WIDEST_BAND = 4, BAND_KINDS = 4 };

// BestDiagonals at most this far apart make one window, and windows one place.
const i32 SPREAD = 24;

// BestDiagonals between a window's outermost ones that a narrow band still takes, and that a middle one does: gaps between
// them cost about their length.
const i32 NARROW_SPREAD = 8;
const i32 MIDDLE_SPREAD = 16;
const i32 LONG_READ = 512;

HOST_DEVICE i32 band_width(i32 kind) {
    return kind == WIDEST_BAND ? 256 : kind == WIDE_BAND ? 160 : kind == MIDDLE_BAND ? 64 : 32;
}
HOST_DEVICE constexpr bool has_long_gaps(i32 width) { return width > 64; }

HOST_DEVICE BandKind band_kind(i32 length, i32 spread) {
    if (length > LONG_READ) return WIDEST_BAND;
    return spread > MIDDLE_SPREAD ? WIDE_BAND : spread > NARROW_SPREAD ? MIDDLE_BAND : NARROW_BAND;
}

// Windows kept of a read: those that its own seeds find, what prototypes needed for the best copy of a repeat to be among
// them; room for more of a part that the best one leaves over; and for those that its mate points to.
const i32 MAX_SEED_WINDOWS = 16;
const i32 MAX_SPLIT_WINDOWS = MAX_SEED_WINDOWS + 4;
const i32 MAX_WINDOWS = MAX_SPLIT_WINDOWS + 4;

struct Window {
    i64 diagonal;    // of its best ungapped segment: reference position minus query position
    i32 score;       // of that segment, bonuses included; replaced by the banded alignment's where that is higher
    i32 ungapped;    // of that segment
    i32 begin, end;  // that segment in the oriented query
    i32 low, high;   // further diagonals with seeds, relative to `diagonal`: low <= 0 <= high
    i8 orientation;
    u8 alternate;  // whether it is on an ALT contig
    i16 band;      // a BandKind, negative until that alignment is made; NO_BAND where none may score higher
    i16 cover_begin, cover_end;  // the part of the oriented query that all its segments cover

    HOST_DEVICE bool gapped() const { return score != ungapped; }
    // Gives up diagonals too far from its own for a narrow band.
    HOST_DEVICE void narrow() {
        if (high - low > NARROW_SPREAD) low = high = 0;
    }
};

// The windows of all reads of a batch.
struct WindowTable {
    Window* rows OF(reads* MAX_WINDOWS);  // MAX_WINDOWS of each slot
    i32* counts OF(reads);                // of a slot's rows the first ones are windows
    i32* unexamined_prefixes OF(reads);            // the most bases shared at a seed by a place that was not looked at; 0: none
    i32* dropped_scores OF(reads);               // the best score that a diagonal may have which had no room; 0: all had

    HOST_DEVICE Window* of(i64 slot) const { return rows + slot * MAX_WINDOWS; }
};

HOST_DEVICE bool beside(const Window& a, const Window& b) {
    i64 offset = a.diagonal - b.diagonal;
    return a.orientation == b.orientation && offset >= -SPREAD && offset <= SPREAD;
}

// Of tasks, behind the last one of a kind: so many lanes have nothing to align.
const i64 NO_TASK = -1;

// A stretch of a read, in orientation 0, so that windows of both orientations compare.
struct Span {
    i32 begin, end;

    HOST_DEVICE i32 length() const { return end - begin; }
    // Whether they share half of the shorter one: then they are two places of one part of the read, else two parts.
    HOST_DEVICE bool rivals(Span other) const {
        i32 shared = minimum(end, other.end) - maximum(begin, other.begin);
        return 2 * shared >= minimum(length(), other.length());
    }
};

HOST_DEVICE Span span_of(const Window& window, i32 length) {
    Span span = window.gapped() ? Span{window.cover_begin, window.cover_end} : Span{window.begin, window.end};
    return window.orientation ? Span{length - span.end, length - span.begin} : span;
}
