// A read laid on one diagonal of the reference: which bases differ, and the segment of it that scores best.
#pragma once
#include "queries.cuh"
#include "reference.cuh"
#include "scoring.cuh"

// Part of a read on a diagonal (reference position minus query position); score includes the bonus for reached ends.
struct Segment {
    i32 score, begin, end;
};

// One oriented read on one diagonal, the part of it that lies inside the contig.
struct Laid {
    Words bases, mask, text;
    const Reference* reference;
    i64 diagonal;
    i32 begin, end;   // query positions inside the contig
    bool ambiguous;   // whether masks have to be looked at

    // Marks (low bit of a pair) of the differing bases from query position i on, at most 32 and none behind end;
    // `unclear` gets those of them that an ambiguous base decides.
    HOST_DEVICE u64 differing(i32 i, u64& unclear) const {
        u64 valid = first_bases(end - i);
        u64 x = differences(bases.at(i), text.at(diagonal + i));
        unclear = 0;
        if (ambiguous) unclear = (mask.at(i) | reference->barriers_at(diagonal + i)) & valid;
        return (x | unclear) & valid;
    }
};

// `anchor` is a query position that lies inside the contig.
HOST_DEVICE Laid lay(const Reference& reference, const Queries& queries, i64 slot, i32 orientation, i64 diagonal, i32 anchor) {
    i32 length = queries.lengths[slot];
    Laid laid = {queries.bases(slot, orientation), queries.mask(slot, orientation), reference.packed(), &reference,
                 diagonal, 0, length, (queries.flags[slot] & READ_AMBIGUOUS) != 0};
    if (diagonal < 0 || !reference.clear(diagonal, diagonal + length)) {
        i64 contig = reference.contig_of(diagonal + anchor);
        laid.begin = (i32)maximum((i64)0, reference.contig_starts[contig] - diagonal);
        laid.end = (i32)minimum((i64)length, reference.contig_starts[contig + 1] - 1 - diagonal);
        laid.ambiguous = true;
    }
    return laid;
}

// Kadane's maximum over the matches between differences; of equal segments the first.
HOST_DEVICE Segment best_segment(const Laid& laid, i32 length, Scoring scoring) {
    Segment best = {0, 0, 0};
    i32 run = laid.begin == 0 ? scoring.clip_penalty : 0, from = laid.begin, last = laid.begin;
    for (i32 i = laid.begin; i < laid.end; i += 32) {
        u64 unclear, marks = laid.differing(i, unclear);
        while (marks) {
            i32 at = first_marked(marks);
            u64 bit = 1ull << (62 - 2 * at);
            run += (i + at - last) * scoring.match;
            if (run > best.score) best = Segment{run, from, i + at};
            run -= unclear & bit ? AMBIGUOUS_PENALTY : scoring.mismatch;
            last = i + at + 1;
            if (run <= 0) run = 0, from = last;
            marks ^= bit;
        }
    }
    run += (laid.end - last) * scoring.match + (laid.end == length ? scoring.clip_penalty : 0);
    if (run > best.score) best = Segment{run, from, laid.end};
    return best;
}
