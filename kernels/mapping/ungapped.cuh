// Ungapped alignment of a read on one diagonal: mismatches, and the best-scoring segment.
#pragma once
#include "reads/queries.cuh"
#include "index/reference.cuh"
#include "mapping/scoring.cuh"

// Part of a read on a diagonal (reference position minus query position); the score includes end bonuses.
struct Segment {
    i32 score, start, end;
};

// Return a hash that decides between placements of the same score: the smaller one wins. It depends on the read and the
// diagonal alone and favours no copy of a repeat. Any constant works; this one was chosen among five on the sets of
// scripts/evaluate, where random choices among identical copies move the share of correct reads by some 0.01 %.
HOST_DEVICE u64 tie_break(u64 read_hash, i64 diagonal) { return splitmix64(read_hash ^ splitmix64((u64)diagonal + 2)); }
// An oriented read on one diagonal, restricted to the part inside the contig.
struct UngappedAlignment {
    PackedWords bases, mask, text;
    const Reference* reference;
    i64 diagonal;
    i32 start, end;  // query positions inside the contig
    bool ambiguous;  // the ambiguity masks must be checked
    bool reversed;   // the oriented read starts with the end of the sequenced read
    // Return the marks (low bit of each pair) of the mismatches at query positions i to i + 31, up to `end`.
    // `ambiguous_marks` receives the mismatches that are due to an ambiguous base.
    HOST_DEVICE u64 mismatches(i32 i, u64& ambiguous_marks) const {
        u64 valid = leading_mask(end - i);
        u64 x = mismatch_mask(bases.at(i), text.at(diagonal + i));
        ambiguous_marks = 0;
        if (ambiguous) ambiguous_marks = (mask.at(i) | reference->barriers_at(diagonal + i)) & valid;
        return (x | ambiguous_marks) & valid;
    }
};

// Return the read of a slot, in an orientation, on a diagonal. anchor: a query position inside the contig.
HOST_DEVICE UngappedAlignment place_ungapped(
        const Reference& reference, const Queries& queries, i64 slot, i32 orientation, i64 diagonal, i32 anchor) {
    i32 length = queries.lengths[slot];
    UngappedAlignment ungapped = {queries.bases(slot, orientation), queries.mask(slot, orientation), reference.packed(),
            &reference, diagonal, 0, length, (queries.flags[slot] & READ_AMBIGUOUS) != 0,
            queries.reversed(slot, orientation)};
    if (diagonal < 0 || !reference.has_no_barrier(diagonal, diagonal + length)) {
        i64 contig = reference.contig_of(diagonal + anchor);
        ungapped.start = (i32)maximum((i64)0, reference.contig_starts[contig] - diagonal);
        ungapped.end = (i32)minimum((i64)length, reference.contig_starts[contig + 1] - 1 - diagonal);
        ungapped.ambiguous = true;
    }
    return ungapped;
}

// The end of an extended segment, and the score of the extension.
struct SegmentEnd {
    i32 score, position;
};

const i32 X_DROP = 30;  // an extension stops this far below its best score
// Return end and score of the best ungapped extension to the right from `from`. length: number of bases of the read.
HOST_DEVICE SegmentEnd extend_right(const UngappedAlignment& ungapped, i32 from, i32 length, const Scoring& scoring) {
    SegmentEnd best = {0, from};
    i32 run = 0, last = from;
    for (i32 i = from; i < ungapped.end; i += 32) {
        u64 ambiguous_marks, marks = ungapped.mismatches(i, ambiguous_marks);
        while (marks) {
            i32 at = first_set_base(marks);
            u64 bit = 1ull << (62 - 2 * at);
            run += (i + at - last) * scoring.match;
            if (run > best.score) best = SegmentEnd{run, i + at};
            run -= ambiguous_marks & bit ? AMBIGUOUS_PENALTY : scoring.mismatch;
            if (run + X_DROP < best.score) return best;
            last = i + at + 1;
            marks ^= bit;
        }
    }
    run += (ungapped.end - last) * scoring.match + (ungapped.end == length ? scoring.right_clip(ungapped.reversed) : 0);
    return run > best.score ? SegmentEnd{run, ungapped.end} : best;
}

// Return start and score of the best ungapped extension to the left of query position `from`.
HOST_DEVICE SegmentEnd extend_left(const UngappedAlignment& ungapped, i32 from, const Scoring& scoring) {
    SegmentEnd best = {0, from};
    i32 run = 0, last = from;
    for (i32 i = from; i > ungapped.start;) {
        i32 start = maximum(i - 32, ungapped.start);
        u64 ambiguous_marks, marks = ungapped.mismatches(start, ambiguous_marks) & leading_mask(i - start);
        while (marks) {
            u64 bit = marks & -marks;
            i32 at = start + first_set_base(bit);
            run += (last - at - 1) * scoring.match;
            if (run > best.score) best = SegmentEnd{run, at + 1};
            run -= ambiguous_marks & bit ? AMBIGUOUS_PENALTY : scoring.mismatch;
            if (run + X_DROP < best.score) return best;
            last = at;
            marks ^= bit;
        }
        i = start;
    }
    run += (last - ungapped.start) * scoring.match + (ungapped.start == 0 ? scoring.left_clip(ungapped.reversed) : 0);
    return run > best.score ? SegmentEnd{run, ungapped.start} : best;
}

// Return the best-scoring segment that contains the exact match [start, end) (X-drop extension to both sides).
HOST_DEVICE Segment extend_segment(
        const UngappedAlignment& ungapped, i32 start, i32 end, i32 length, const Scoring& scoring) {
    SegmentEnd left = extend_left(ungapped, start, scoring), right = extend_right(ungapped, end, length, scoring);
    return Segment{left.score + (end - start) * scoring.match + right.score, left.position, right.position};
}
