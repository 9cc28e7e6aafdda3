// The pieces of a read, which are looked up each for itself.
#pragma once
#include "search/placement.cuh"
#include "search/window_builder.cuh"

const i32 MOST_PIECES = 8;
const i32 LOOK_UPS = 2 * MOST_PIECES;  // of a read: on both strands
const i32 FEWEST_PIECES = 3;

// `count` of as many bases, all but few of the read's.
struct Pieces {
    i32 length, count;

    HOST_DEVICE i32 bases() const { return length / count; }
    // A piece has the same bases in both orientations.
    HOST_DEVICE i32 begin(i32 piece, i32 orientation) const {
        i32 first = piece * bases();
        return orientation ? length - first - bases() : first;
    }
};

// Of at least so many bases each; none of a read that is too short, or absent.
HOST_DEVICE Pieces pieces_of(const Queries& queries, i64 slot, i32 least_bases) {
    i32 length = queries.lengths[slot], count = minimum(length / least_bases, MOST_PIECES);
    bool whole = count >= FEWEST_PIECES && !(queries.flags[slot] & READ_ABSENT);
    return Pieces{length, whole ? count : 0};
}

// A diagonal, and the equal bases of the oriented read that name it.
struct Anchor {
    i64 diagonal;
    i32 orientation, begin, end;

    HOST_DEVICE bool same(const Anchor& other) const {
        return diagonal == other.diagonal && orientation == other.orientation;
    }
};

// Points that a place loses at least for each piece that it does not hold whole: by a mismatch or a gap in it, or by a
// clipped end, which may take several.
HOST_DEVICE i32 least_loss(const Pieces& pieces, const Scoring& scoring) {
    i32 clipped = minimum(pieces.bases() * scoring.match, scoring.match + scoring.clip_penalty);
    return minimum(minimum(scoring.match + scoring.mismatch, scoring.gap(1)), clipped);
}

// And in phred; qualities: of orientation 0.
HOST_DEVICE i32 least_penalty(const Pieces& pieces, i32 piece, const Qualities& qualities, i32 variant,
                              const Scoring& scoring) {
    i32 begin = pieces.begin(piece, 0), least = qualities.at(begin);
    for (i32 i = 1; i < pieces.bases(); ++i) least = minimum(least, qualities.at(begin + i));
    i32 lost = in_phred(least_loss(pieces, scoring), variant, scoring);
    return minimum(maximum(either(least + THIRD, variant), 1), lost);
}
