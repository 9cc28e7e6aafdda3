// Window builders: windows while they are put together from diagonals, those at most SPREAD apart.
#pragma once
#include "mapping/diagonals.cuh"
#include "mapping/windows.cuh"

const i32 LONG_SPREAD = 128;  // and these where a gap pays for it: a wide band holds them

// A window while it is put together: the stretch of the query that its segments cover, and what an alignment that
// steps between their diagonals may score.
struct WindowBuilder {
    Window window;
    i32 score_bound, length;  // of the read

    // The diagonals between the outermost ones if one at this offset is taken too.
    HOST_DEVICE i64 spread_with(i64 offset) const {
        return maximum<i64>(window.high, offset) - minimum<i64>(window.low, offset);
    }
    // What stepping to the segment's diagonal adds; 0 or less where it covers nothing else, or costs what it adds. More than
    // half of a read is no insertion: too little of it would be seen in the reference, and its errors be taken for variants.
    HOST_DEVICE i32 gain(const Diagonal& one, const Scoring& scoring) const {
        i32 offset = (i32)(one.diagonal - window.diagonal), begin = window.cover_begin, end = window.cover_end;
        if (one.segment.begin >= begin && one.segment.end <= end) return 0;
        i32 inserted = one.segment.begin + one.segment.end > begin + end ? -offset : offset;
        if (2 * inserted > length) return 0;
        i32 shared = maximum(minimum(end, one.segment.end) - maximum(begin, one.segment.begin), 0);
        i32 gap = inserted > 0 ? scoring.insertion(inserted) : scoring.deletion(-inserted);
        return one.segment.score - shared * scoring.match - gap;
    }
    HOST_DEVICE bool takes(const Diagonal& one, const Reference& reference, const Scoring& scoring) const {
        i64 offset = one.diagonal - window.diagonal;
        if (one.orientation != window.orientation || spread_with(offset) > LONG_SPREAD) return false;
        if ((offset < -SPREAD || offset > SPREAD) && gain(one, scoring) <= 0) return false;
        return reference.contig_of(one.diagonal + one.segment.begin) ==
               reference.contig_of(window.diagonal + window.begin);
    }
    HOST_DEVICE void add(const Diagonal& one, const Scoring& scoring) {
        i32 offset = (i32)(one.diagonal - window.diagonal), more = gain(one, scoring);
        if (more > 0 || spread_with(offset) <= MIDDLE_SPREAD) {
            window.low = minimum(window.low, offset);
            window.high = maximum(window.high, offset);
        }
        if (more <= 0) return;
        score_bound += more;
        window.cover_begin = (i16)minimum<i32>(window.cover_begin, one.segment.begin);
        window.cover_end = (i16)maximum<i32>(window.cover_end, one.segment.end);
    }
};

// The window of a diagonal alone. Only where more points are lost than a gap costs may an alignment score more.
HOST_DEVICE WindowBuilder builder_of(const Diagonal& one, i32 length, const Scoring& scoring) {
    Segment segment = one.segment;
    bool align = scoring.perfect(length) - segment.score > scoring.least_gap(1);
    Window window = {one.diagonal,        segment.score,     segment.score, segment.begin,      segment.end,     0, 0,
                     (i8)one.orientation, (u8)one.alternate, align,         (i16)segment.begin, (i16)segment.end};
    return WindowBuilder{window, segment.score, length};
}
