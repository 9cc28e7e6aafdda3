// Seed matches: all suffixes that start with a seed of a read, and the diagonals they name.
//
// Every stride-th substring of seed_bases bases of the query is a seed. diagonals.cu keeps the best of the nearest
// suffixes; here every suffix counts. Only the first seed in a segment names it, so that the list has no duplicates.
#pragma once
#include "mapping/window_builder.cuh"
#include "common/binary_search.cuh"
#include "index/suffix_array.cuh"

// Return true if `bases` bases of the read from query position `position` on match the reference exactly.
HOST_DEVICE bool matches_at(const UngappedAlignment& ungapped, i32 position, i32 bases) {
    u64 ambiguous_marks;
    if (position < ungapped.start || position + bases > ungapped.end) return false;
    return !(ungapped.mismatches(position, ambiguous_marks) & leading_mask(bases));
}

// Return true if a long gap to the segment pays, or if the segment may be the better one of two that a gap joins to an
// alignment of min_score; the lesser segment may be too short to have a seed.
HOST_DEVICE bool is_worth_listing(const Segment& segment, const Scoring& scoring) {
    return segment.score > scoring.min_gap_cost(SPREAD) ||
            2 * segment.score >= scoring.min_score + scoring.min_gap_cost(1);
}

// The suffixes that start with the seeds of some reads.
struct SeedMatches {
    const i32* selected OF(selected);
    const i64* offsets OF(selected + 1);  // index of each read's first seed
    const suffix_t* ranks OF(seeds);      // rank of the first suffix of each seed
    const i64* ends OF(seeds);            // inclusive prefix sum of the seeds' match counts
    i64 read_count;
    i32 seed_bases, stride;
};

// Iterates over matches in their order.
struct MatchIterator {
    const Reference& reference;
    const Queries& queries;
    const SuffixArray& index;
    const SeedMatches& matches;
    i64 read, seed;  // of the previous match
    // Find the diagonal and the slot of a match. Return false if its segment is too short or named by an earlier seed.
    HOST_DEVICE bool find(i64 match, const Scoring& scoring, Diagonal& found, i64& slot) {
        i32 seed_bases = matches.seed_bases, stride = matches.stride;
        seed = record_of_item(matches.ends, matches.offsets[matches.read_count], match, seed);
        read = record_of_item(matches.offsets + 1, matches.read_count, seed, read);
        slot = matches.selected[read];
        i64 first = matches.offsets[read], seeds = (matches.offsets[read + 1] - first) / 2, seed_index = seed - first;
        i32 orientation = seed_index >= seeds, position = (i32)(seed_index - orientation * seeds) * stride;
        i64 within = match - (seed ? matches.ends[seed - 1] : 0);
        i64 suffix = (i64)index.suffixes[(i64)matches.ranks[seed] + within], diagonal = suffix - position;
        UngappedAlignment ungapped = place_ungapped(reference, queries, slot, orientation, diagonal, position);
        if (matches_at(ungapped, position - stride, stride)) return false;
        Segment segment = extend_segment(ungapped, position, position + seed_bases, queries.lengths[slot], scoring);
        if (!is_worth_listing(segment, scoring)) return false;
        for (i32 i = (segment.start + stride - 1) / stride * stride; i < position; i += stride)
            if (matches_at(ungapped, i, seed_bases)) return false;
        found = diagonal_of(reference, ungapped, segment, orientation, queries.hashes[slot]);
        return true;
    }
};
