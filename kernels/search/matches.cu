// Matches: all suffixes that begin with a seed of a read, and the diagonals that they name.
//
// A seed is the seed_bases from a position of the query on, of which every stride-th is one. Where diagonals.cu keeps the
// best of the nearest suffixes, here each one counts. A segment of a diagonal is named by the first seed in it only, which
// keeps the list free of what it holds already without a look at it.
#include "search/window_builder.cuh"
#include "common/item_record.cuh"
#include "index/suffix_array.cuh"

// An item is a query: orientation (item & 1) of the read selected[item >> 1]. Its seeds are seed_offsets[item >> 1] on, those
// of orientation 0 first; of each the first suffix and their count. Several passes, so that the loads of a query's seeds are
// under way together.
KERNEL void find_matches(i64 begin, i64 end, Queries queries, Reference reference, SuffixArray index,
                         const i32* selected OF(selected), const i64* seed_offsets OF(selected + 1),
                         suffix_t* ranks OF(seeds), i64* counts OF(seeds), i32 seed_bases, i32 stride) {
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item >> 1];
        i32 orientation = (i32)(item & 1);
        i64 first = seed_offsets[item >> 1], count = (seed_offsets[(item >> 1) + 1] - first) / 2;
        first += orientation * count;
        Words bases = queries.bases(slot, orientation), mask = queries.mask(slot, orientation);
        bool ambiguous = queries.flags[slot] & READ_AMBIGUOUS;
        for (i64 i = 0; i < count; ++i)
            PREFETCH(&index.prefix_table[prefix_code(Suffix{bases, i * stride, seed_bases}, index.table_bases)]);
        for (i64 i = 0; i < count; ++i) {
            Ranks range = prefix_range(index.prefix_table, Suffix{bases, i * stride, seed_bases}, index.table_bases);
            if (ambiguous && unambiguous_length(mask, i * stride, seed_bases) < seed_bases) range.high = range.low;
            ranks[first + i] = (suffix_t)range.low;
            counts[first + i] = range.high - range.low;
            PREFETCH(&index.suffixes[(range.low + range.high) >> 1]);
        }
        for (i64 i = 0; i < count; ++i) {
            i64 middle = (i64)ranks[first + i] + (counts[first + i] >> 1);
            PREFETCH(&reference.words[index.suffixes[minimum(middle, index.suffix_count - 1)] >> 5]);
        }
        for (i64 i = 0; i < count; ++i) {
            i64 low = (i64)ranks[first + i];
            Ranks found = {low, low + counts[first + i]};
            found = equal_range(reference, index.suffixes, Suffix{bases, i * stride, seed_bases}, found);
            ranks[first + i] = (suffix_t)found.low;
            counts[first + i] = found.high - found.low;
        }
    }
}

HOST_DEVICE bool equal_at(const Laid& laid, i32 position, i32 bases) {
    u64 unclear;
    if (position < laid.begin || position + bases > laid.end) return false;
    return !(laid.differing(position, unclear) & first_bases(bases));
}

// Whether a gap to a segment that is not near pays, or whether it may be the better one of two that a gap joins to an
// alignment of min_score. The lesser one may be too short to have a seed.
HOST_DEVICE bool is_worth(const Segment& segment, const Scoring& scoring) {
    return segment.score > scoring.gap(SPREAD) || 2 * segment.score >= scoring.min_score + scoring.gap(1);
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
struct MatchWalk {
    const Reference& reference;
    const Queries& queries;
    const SuffixArray& index;
    const SeedMatches& matches;
    i64 read, seed;  // of the match before

    // The diagonal of a match and its slot; false where its segment is worth nothing, or a seed before it names the same one.
    HOST_DEVICE bool find(i64 match, const Scoring& scoring, Diagonal& found, i64& slot) {
        i32 seed_bases = matches.seed_bases, stride = matches.stride;
        seed = item_record(matches.ends, matches.offsets[matches.read_count], match, seed);
        read = item_record(matches.offsets + 1, matches.read_count, seed, read);
        slot = matches.selected[read];
        i64 first = matches.offsets[read], seeds = (matches.offsets[read + 1] - first) / 2, number = seed - first;
        i32 orientation = number >= seeds, position = (i32)(number - orientation * seeds) * stride;
        i64 within = match - (seed ? matches.ends[seed - 1] : 0);
        i64 place = (i64)index.suffixes[(i64)matches.ranks[seed] + within], diagonal = place - position;
        Laid laid = lay(reference, queries, slot, orientation, diagonal, position);
        if (equal_at(laid, position - stride, stride)) return false;
        Segment segment = extend_segment(laid, position, position + seed_bases, queries.lengths[slot], scoring);
        if (!is_worth(segment, scoring)) return false;
        for (i32 i = (segment.begin + stride - 1) / stride * stride; i < position; i += stride)
            if (equal_at(laid, i, seed_bases)) return false;
        found = Diagonal{diagonal, tie_of(queries.hashes[slot], diagonal), segment, orientation};
        return true;
    }
};

// An item is a match, counted from first_match on: 1 where it names a diagonal, else 0.
KERNEL void count_diagonals(i64 begin, i64 end, Queries queries, Reference reference, SuffixArray index,
                            Scoring scoring, SeedMatches matches, i64* counts OF(items), i64 first_match) {
    MatchWalk walk = {reference, queries, index, matches, -1, -1};
    FOR_EACH(item, begin, end) {
        Diagonal found;
        i64 slot;
        counts[item] = walk.find(first_match + item, scoring, found, slot);
    }
}

// ends: the inclusive prefix sum of what count_diagonals gave.
KERNEL void list_diagonals(i64 begin, i64 end, Queries queries, Reference reference, SuffixArray index, Scoring scoring,
                           SeedMatches matches, const i64* ends OF(items), Diagonal* diagonals OF(diagonals),
                           i32* slots OF(diagonals), i64 first_match) {
    MatchWalk walk = {reference, queries, index, matches, -1, -1};
    FOR_EACH(item, begin, end) {
        i64 place = item ? ends[item - 1] : 0, slot;
        if (ends[item] == place) continue;
        walk.find(first_match + item, scoring, diagonals[place], slot);
        slots[place] = (i32)slot;
    }
}
