// Ungapped alignment of a read on every diagonal of a range, without seeds.
#pragma once
#include "mapping/diagonals.cuh"
#include "mapping/pairs.cuh"
#include "mapping/windows.cuh"

const i32 MIN_RUN = 8;  // minimum length of an exact match to extend; some divergent mates have no longer one
// A read and the contig on whose diagonals it is placed, in one orientation.
struct DiagonalRange {
    const Reference& reference;
    const Queries& queries;
    i64 slot, contig_start, contig_end;
    i32 orientation, length;
    // Find the longest exact match on a diagonal; return false if it is shorter than MIN_RUN.
    HOST_DEVICE bool longest_run(const UngappedAlignment& ungapped, i32& start, i32& end) const {
        start = end = ungapped.start;
        for (i32 i = ungapped.start; i + MIN_RUN <= ungapped.end; i += 32 - MIN_RUN) {
            i32 bases = minimum(ungapped.end - i, 32);
            u64 ambiguous_marks, marks = ungapped.mismatches(i, ambiguous_marks);
            u64 runs = ~marks & LOW_BITS &
                    leading_mask(bases);  // at first bases of runs of at least 1, 2, 4, then MIN_RUN
            runs &= runs << 2;
            u64 four = runs & runs << 4;
            if (!(four & four << 2 * (MIN_RUN - 4))) continue;
            for (i32 from = 0; from < bases;) {
                i32 to = minimum(first_set_base(marks & ~leading_mask(from)), bases);
                if (to - from > end - start) start = i + from, end = i + to;
                from = to + 1;
            }
        }
        return end - start >= MIN_RUN;
    }
    // Align the read on a diagonal around its longest exact match; return false if that is too short.
    HOST_DEVICE bool verify(i64 diagonal, Diagonal& found, const Scoring& scoring) const {
        i32 anchor = (i32)clamp(contig_start - diagonal, (i64)0, (i64)length - 1), start, end;
        UngappedAlignment ungapped = place_ungapped(reference, queries, slot, orientation, diagonal, anchor);
        if (!longest_run(ungapped, start, end)) return false;
        Segment segment = extend_segment(ungapped, start, end, length, scoring);
        found = diagonal_of(reference, ungapped, segment, orientation, queries.hashes[slot]);
        return true;
    }
    // Offer the read's alignments on all diagonals in [low, high].
    HOST_DEVICE void search(i64 low, i64 high, BestDiagonals& diagonals, const Scoring& scoring) const {
        low = maximum(low, contig_start - length + MIN_RUN);
        high = minimum(high, contig_end - MIN_RUN);
        for (i64 round = low; round <= high; round += WARP_WIDTH) {
            i64 diagonal = round + warp_lane();
            Diagonal candidate = {};
            bool is_valid = diagonal <= high && verify(diagonal, candidate, scoring);
            if (warp_any(is_valid)) diagonals.offer(candidate, is_valid);
        }
    }
};

// Return the range of diagonals on which a read of `length` bases, in one orientation, is placed on a contig.
HOST_DEVICE DiagonalRange diagonal_range(
        const Reference& reference, const Queries& queries, i64 slot, i64 contig, i32 orientation, i32 length) {
    i64 start = reference.contig_starts[contig], end = reference.contig_starts[contig + 1] - 1;
    return DiagonalRange{reference, queries, slot, start, end, orientation, length};
}

// A read that is searched at the insert-size distance of its mate.
struct MateSearch {
    const Reference& reference;
    const Queries& queries;
    const InsertSizeTable& inserts;
    i64 slot;
    i32 length;
    bool flipped, mate_first;  // mate_first: the mate is the first read of the pair
    // Try all diagonals at which the read forms a proper pair with the mate's window, in each direction of the library.
    HOST_DEVICE void search(
            FragmentEnd mate, const Window& window, BestDiagonals& diagonals, const Scoring& scoring) const {
        i64 contig = reference.contig_of(window.diagonal + window.start);
        for (i32 direction = 0; direction < DIRECTIONS; ++direction) {
            i64 low = inserts.lows[direction], high = inserts.highs[direction];
            if (low > high) continue;
            i64 sign = InsertSizeTable::sign(direction, mate, mate_first);
            bool reversed = mate.reversed != (direction == FR || direction == RF);
            i64 shift = mate.position - (reversed ? length : 0);
            DiagonalRange range = diagonal_range(reference, queries, slot, contig, reversed != flipped, length);
            range.search(shift + (sign > 0 ? low : -high), shift + (sign > 0 ? high : -low), diagonals, scoring);
        }
    }
};
