// Matches: all suffixes that begin with a seed of a read, and the diagonals that they name.
//
// A seed is the seed_bases from a position of the query on, of which every stride-th is one. Where diagonals.cu keeps the
// best of the nearest suffixes, here each one counts. A segment of a diagonal is named by the first seed in it only, which
// keeps the list free of what it holds already without a look at it.
#pragma once
#include "mapping/window_builder.cuh"
#include "common/binary_search.cuh"
#include "index/suffix_array.cuh"

HOST_DEVICE bool equal_at(const UngappedAlignment& laid, i32 position, i32 bases) {
    u64 unclear;
    if (position < laid.begin || position + bases > laid.end) return false;
    return !(laid.differing(position, unclear) & leading_mask(bases));
}

// Whether a gap to a segment that is not near pays, or whether it may be the better one of two that a gap joins to an
// alignment of min_score. The lesser one may be too short to have a seed.
HOST_DEVICE bool is_worth(const Segment& segment, const Scoring& scoring) {
    return segment.score > scoring.least_gap(SPREAD) || 2 * segment.score >= scoring.min_score + scoring.least_gap(1);
}

// The suffixes that begin with the seeds of some reads.
struct SeedMatches {
    const i32* selected OF(selected);
    const i64* offsets OF(selected + 1);  // where each read's seeds begin
    const suffix_t* ranks OF(seeds);      // the first suffix of each seed
    const i64* ends OF(seeds);            // matches up to and with each seed's
    i64 read_count;
    i32 seed_bases, stride;
};

// Matches in their order.
struct MatchIterator {
    const Reference& reference;
    const Queries& queries;
    const SuffixArray& index;
    const SeedMatches& matches;
    i64 read, seed;  // of the match before

    // The diagonal of a match and its slot; false where its segment is worth nothing, or a seed before it names the same one.
    HOST_DEVICE bool find(i64 match, const Scoring& scoring, Diagonal& found, i64& slot) {
        i32 seed_bases = matches.seed_bases, stride = matches.stride;
        seed = record_of_item(matches.ends, matches.offsets[matches.read_count], match, seed);
        read = record_of_item(matches.offsets + 1, matches.read_count, seed, read);
        slot = matches.selected[read];
        i64 first = matches.offsets[read], seeds = (matches.offsets[read + 1] - first) / 2, number = seed - first;
        i32 orientation = number >= seeds, position = (i32)(number - orientation * seeds) * stride;
        i64 within = match - (seed ? matches.ends[seed - 1] : 0);
        i64 place = (i64)index.suffixes[(i64)matches.ranks[seed] + within], diagonal = place - position;
        UngappedAlignment laid = place_ungapped(reference, queries, slot, orientation, diagonal, position);
        if (equal_at(laid, position - stride, stride)) return false;
        Segment segment = extend_segment(laid, position, position + seed_bases, queries.lengths[slot], scoring);
        if (!is_worth(segment, scoring)) return false;
        for (i32 i = (segment.begin + stride - 1) / stride * stride; i < position; i += stride)
            if (equal_at(laid, i, seed_bases)) return false;
        found = diagonal_of(reference, laid, segment, orientation, queries.hashes[slot]);
        return true;
    }
};
