// A window: a candidate placement of a read, as a band of diagonals.
#pragma once
#include "common/portable.cuh"

// The width of a banded alignment. A single diagonal needs room for indels that no seed shows; several diagonals also
// need room for what lies between them, and in a long read length differences add up. Only bands wider than MIDDLE_BAND
// have the capped cost of long gaps; narrower ones have hardly room for a long gap.
enum BandKind { NO_BAND = 0, NARROW_BAND = 1, MIDDLE_BAND = 2, WIDE_BAND = 3, WIDEST_BAND = 4, BAND_KINDS = 4 };

const i32 SPREAD = 24;  // maximum distance of diagonals of one window, and of windows of one placement
const i32 NARROW_SPREAD = 8, MIDDLE_SPREAD = 16;  // of a window in a narrow and in a middle band
const i32 LONG_READ = 512;                        // longer reads have the widest band
// Diagonals of the bands of each kind.
const i32 NARROW_WIDTH = 32, MIDDLE_WIDTH = 64, WIDE_WIDTH = 160, WIDEST_WIDTH = 256;
// Return the number of diagonals of a band of a BandKind.
HOST_DEVICE i32 band_width(i32 kind) {
    if (kind == WIDEST_BAND) return WIDEST_WIDTH;
    return kind == WIDE_BAND ? WIDE_WIDTH : kind == MIDDLE_BAND ? MIDDLE_WIDTH : NARROW_WIDTH;
}
HOST_DEVICE constexpr bool has_long_gaps(i32 width) { return width > MIDDLE_WIDTH; }  // of a band of this width
// Return the BandKind for a read of `length` bases and a window whose diagonals are `spread` apart.
HOST_DEVICE BandKind band_kind(i32 length, i32 spread) {
    if (length > LONG_READ) return WIDEST_BAND;
    return spread > MIDDLE_SPREAD ? WIDE_BAND : spread > NARROW_SPREAD ? MIDDLE_BAND : NARROW_BAND;
}

// Windows of a read: 16 from its own seeds (prototypes needed that many for the best copy of a repeat to be among
// them), more for a part that the best window leaves uncovered, and more for windows that the mate points to.
const i32 MAX_SEED_WINDOWS = 16;
const i32 MAX_SPLIT_WINDOWS = MAX_SEED_WINDOWS + 4;
const i32 MAX_WINDOWS = MAX_SPLIT_WINDOWS + 4;

struct Window {
    i64 diagonal;    // of its best ungapped segment: reference position minus query position
    i32 score;       // of that segment, bonuses included; or of the banded alignment if that is higher
    i32 ungapped;    // score of that segment
    i32 start, end;  // that segment in the oriented query
    i32 low, high;   // further diagonals with seeds, relative to `diagonal`: low <= 0 <= high
    i8 orientation;
    u8 alternate;                // on an ALT contig
    i16 band;                    // a BandKind, negative until that alignment is made; NO_BAND if no gap can pay
    i16 cover_start, cover_end;  // part of the oriented query that all segments of the window cover
    HOST_DEVICE bool gapped() const { return score != ungapped; }
    // Give up diagonals too far from its own for a narrow band.
    HOST_DEVICE void narrow() {
        if (high - low > NARROW_SPREAD) low = high = 0;
    }
};

// The windows of all reads of a batch.
struct WindowTable {
    Window* rows OF(reads* MAX_WINDOWS);  // MAX_WINDOWS of each slot; the first `counts` are valid
    i32* counts OF(reads);                // number of windows of each slot
    i32* unexamined_prefixes OF(reads);   // longest prefix shared by an unexamined suffix and a seed; 0 for none
    i32* dropped_scores OF(reads);        // upper bound of the scores of diagonals that were dropped; 0 if none was
    HOST_DEVICE Window* of(i64 slot) const { return rows + slot * MAX_WINDOWS; }
};

// Return true if two windows have one orientation and diagonals at most SPREAD apart.
HOST_DEVICE bool is_near(const Window& a, const Window& b) {
    i64 offset = a.diagonal - b.diagonal;
    return a.orientation == b.orientation && offset >= -SPREAD && offset <= SPREAD;
}

const i64 NO_TASK = -1;  // padding after the tasks of a kind: a lane without an alignment
// A part of a read in orientation 0, so that windows of both orientations can be compared.
struct Span {
    i32 start, end;
    HOST_DEVICE i32 length() const { return end - start; }
    // Return true if the spans share at least half of the shorter one: two placements of one part of the read.
    HOST_DEVICE bool overlaps(Span other) const {
        i32 shared = minimum(end, other.end) - maximum(start, other.start);
        return 2 * shared >= minimum(length(), other.length());
    }
};

// Return the part of a read of `length` bases that a window aligns.
HOST_DEVICE Span span_of(const Window& window, i32 length) {
    Span span = window.gapped() ? Span{window.cover_start, window.cover_end} : Span{window.start, window.end};
    return window.orientation ? Span{length - span.end, length - span.start} : span;
}
