// Stretches: a read laid on diagonals that no seed has named.
#pragma once
#include "search/diagonals.cuh"

const i32 LEAST_RUN = 8;  // equal bases from which a segment is extended: the longest that some mates have

// The diagonals of one read that lie in [low, high], on one strand.
struct Stretch {
    const Reference& reference;
    const Queries& queries;
    i64 slot, contig_begin, contig_end;
    i32 orientation, length;

    // The longest run of equal bases on this diagonal; false where none is long.
    HOST_DEVICE bool longest_run(const Laid& laid, i32& begin, i32& end) const {
        begin = end = laid.begin;
        for (i32 i = laid.begin; i + LEAST_RUN <= laid.end; i += 32 - LEAST_RUN) {
            i32 bases = minimum(laid.end - i, 32);
            u64 unclear, marks = laid.differing(i, unclear);
            u64 runs =
                ~marks & LOW_BITS & first_bases(bases);  // then, at their first bases, those of 2, 4 and LEAST_RUN
            runs &= runs << 2;
            u64 four = runs & runs << 4;
            if (!(four & four << 2 * (LEAST_RUN - 4))) continue;
            for (i32 from = 0; from < bases;) {
                i32 to = minimum(first_marked(marks & ~first_bases(from)), bases);
                if (to - from > end - begin) begin = i + from, end = i + to;
                from = to + 1;
            }
        }
        return end - begin >= LEAST_RUN;
    }
    // The read on a diagonal, around its longest run; false where none is long.
    HOST_DEVICE bool verify(i64 diagonal, Diagonal& found, const Scoring& scoring) const {
        i32 anchor = (i32)clamp(contig_begin - diagonal, (i64)0, (i64)length - 1), begin, end;
        Laid laid = lay(reference, queries, slot, orientation, diagonal, anchor);
        if (!longest_run(laid, begin, end)) return false;
        Segment segment = extend_segment(laid, begin, end, length, scoring);
        found = Diagonal{diagonal, tie_of(queries.hashes[slot], diagonal), segment, orientation};
        return true;
    }
    HOST_DEVICE void search(i64 low, i64 high, Diagonals& diagonals, const Scoring& scoring) const {
        low = maximum(low, contig_begin - length + LEAST_RUN);
        high = minimum(high, contig_end - LEAST_RUN);
        for (i64 round = low; round <= high; round += GROUP_WIDTH) {
            i64 diagonal = round + group_lane();
            Diagonal fresh = {};
            bool real = diagonal <= high && verify(diagonal, fresh, scoring);
            if (group_any(real)) diagonals.offer(fresh, real);
        }
    }
};
