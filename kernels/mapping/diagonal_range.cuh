// Stretches: a read laid on diagonals that no seed has named, all of some part of the reference.
#pragma once
#include "mapping/diagonals.cuh"
#include "mapping/pairs.cuh"
#include "mapping/windows.cuh"

const i32 MIN_RUN = 8;  // equal bases from which a segment is extended: the longest that some mates have

// The diagonals of one read that lie in [low, high], on one strand.
struct DiagonalRange {
    const Reference& reference;
    const Queries& queries;
    i64 slot, contig_begin, contig_end;
    i32 orientation, length;

    // The longest run of equal bases on this diagonal; false where none is long.
    HOST_DEVICE bool longest_run(const UngappedAlignment& laid, i32& begin, i32& end) const {
        begin = end = laid.begin;
        for (i32 i = laid.begin; i + MIN_RUN <= laid.end; i += 32 - MIN_RUN) {
            i32 bases = minimum(laid.end - i, 32);
            u64 unclear, marks = laid.differing(i, unclear);
            u64 runs =
                ~marks & LOW_BITS & leading_mask(bases);  // then, at their first bases, those of 2, 4 and MIN_RUN
            runs &= runs << 2;
            u64 four = runs & runs << 4;
            if (!(four & four << 2 * (MIN_RUN - 4))) continue;
            for (i32 from = 0; from < bases;) {
                i32 to = minimum(first_set_base(marks & ~leading_mask(from)), bases);
                if (to - from > end - begin) begin = i + from, end = i + to;
                from = to + 1;
            }
        }
        return end - begin >= MIN_RUN;
    }
    // The read on a diagonal, around its longest run; false where none is long.
    HOST_DEVICE bool verify(i64 diagonal, Diagonal& found, const Scoring& scoring) const {
        i32 anchor = (i32)clamp(contig_begin - diagonal, (i64)0, (i64)length - 1), begin, end;
        UngappedAlignment laid = place_ungapped(reference, queries, slot, orientation, diagonal, anchor);
        if (!longest_run(laid, begin, end)) return false;
        Segment segment = extend_segment(laid, begin, end, length, scoring);
        found = diagonal_of(reference, laid, segment, orientation, queries.hashes[slot]);
        return true;
    }
    HOST_DEVICE void search(i64 low, i64 high, BestDiagonals& diagonals, const Scoring& scoring) const {
        low = maximum(low, contig_begin - length + MIN_RUN);
        high = minimum(high, contig_end - MIN_RUN);
        for (i64 round = low; round <= high; round += WARP_WIDTH) {
            i64 diagonal = round + warp_lane();
            Diagonal fresh = {};
            bool real = diagonal <= high && verify(diagonal, fresh, scoring);
            if (warp_any(real)) diagonals.offer(fresh, real);
        }
    }
};

// A read looked for where the end of its mate expects it.
struct MateSearch {
    const Reference& reference;
    const Queries& queries;
    const InsertSizeTable& inserts;
    i64 slot;
    i32 length;
    bool flipped, mate_first;  // whether the mate is the first read

    // All diagonals of each direction that the library has, beside the mate's window.
    HOST_DEVICE void search(FragmentEnd mate, const Window& window, BestDiagonals& diagonals,
                            const Scoring& scoring) const {
        i64 contig = reference.contig_of(window.diagonal + window.begin);
        for (i32 direction = 0; direction < DIRECTIONS; ++direction) {
            i64 low = inserts.lows[direction], high = inserts.highs[direction];
            if (low > high) continue;
            i64 sign = InsertSizeTable::sign(direction, mate, mate_first);
            bool reversed = mate.reversed != (direction == FR || direction == RF);
            i64 shift = mate.place - (reversed ? length : 0);
            DiagonalRange stretch = {reference,
                                     queries,
                                     slot,
                                     reference.contig_starts[contig],
                                     reference.contig_starts[contig + 1] - 1,
                                     reversed != flipped,
                                     length};
            stretch.search(shift + (sign > 0 ? low : -high), shift + (sign > 0 ? high : -low), diagonals, scoring);
        }
    }
};
