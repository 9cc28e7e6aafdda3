// Build windows from diagonals at most SPREAD apart.
#pragma once
#include "mapping/diagonals.cuh"
#include "mapping/windows.cuh"

const i32 LONG_SPREAD = 128;  // largest distance of diagonals if a gap between them pays; a wide band holds them
// A window under construction, and an upper bound of the score of an alignment that steps between its diagonals.
struct WindowBuilder {
    Window window;
    i32 score_bound, length;  // length: bases of the read
    // Return the spread of the diagonals including one at this offset.
    HOST_DEVICE i64 spread_with(i64 offset) const {
        return maximum<i64>(window.high, offset) - minimum<i64>(window.low, offset);
    }
    // Return the points that stepping to the segment's diagonal adds; 0 or less if it adds nothing. An
    // insertion of more than half of the read is not accepted: its errors would be taken for variants.
    HOST_DEVICE i32 gain(const Diagonal& candidate, const Scoring& scoring) const {
        i32 offset = (i32)(candidate.diagonal - window.diagonal), start = window.cover_start, end = window.cover_end;
        if (candidate.segment.start >= start && candidate.segment.end <= end) return 0;
        i32 inserted = candidate.segment.start + candidate.segment.end > start + end ? -offset : offset;
        if (2 * inserted > length) return 0;
        i32 shared = maximum(minimum(end, candidate.segment.end) - maximum(start, candidate.segment.start), 0);
        i32 gap = inserted > 0 ? scoring.insertion(inserted) : scoring.deletion(-inserted);
        return candidate.segment.score - shared * scoring.match - gap;
    }
    HOST_DEVICE bool accepts(const Diagonal& candidate, const Reference& reference, const Scoring& scoring) const {
        i64 offset = candidate.diagonal - window.diagonal;
        if (candidate.orientation != window.orientation || spread_with(offset) > LONG_SPREAD) return false;
        if ((offset < -SPREAD || offset > SPREAD) && gain(candidate, scoring) <= 0) return false;
        return reference.contig_of(candidate.diagonal + candidate.segment.start) ==
                reference.contig_of(window.diagonal + window.start);
    }
    HOST_DEVICE void add(const Diagonal& candidate, const Scoring& scoring) {
        i32 offset = (i32)(candidate.diagonal - window.diagonal), more = gain(candidate, scoring);
        if (more > 0 || spread_with(offset) <= MIDDLE_SPREAD) {
            window.low = minimum(window.low, offset);
            window.high = maximum(window.high, offset);
        }
        if (more <= 0) return;
        score_bound += more;
        window.cover_start = (i16)minimum<i32>(window.cover_start, candidate.segment.start);
        window.cover_end = (i16)maximum<i32>(window.cover_end, candidate.segment.end);
    }
};

// Return the window of a single diagonal. It needs a banded alignment only if more points are lost than a gap costs.
HOST_DEVICE WindowBuilder builder_of(const Diagonal& candidate, i32 length, const Scoring& scoring) {
    Segment segment = candidate.segment;
    bool align = scoring.perfect(length) - segment.score > scoring.min_gap_cost(1);
    Window window = {candidate.diagonal, segment.score, segment.score, segment.start, segment.end, 0, 0,
            (i8)candidate.orientation, (u8)candidate.alternate, align, (i16)segment.start, (i16)segment.end};
    return WindowBuilder{window, segment.score, length};
}
