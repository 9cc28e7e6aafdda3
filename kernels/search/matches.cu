// Matches: all suffixes that begin with a seed of a read, and the diagonals that they tell.
//
// A seed is the seed_bases from a position of the query on, of which every stride-th is one. Where diagonals.cu keeps the
// best of the nearest suffixes, here each one counts. A segment of a diagonal is told by the first seed in it only, which
// keeps the list free of what it holds already without a look at it.
#include "search/window_builder.cuh"
#include "common/item_record.cuh"
#include "index/suffix_array.cuh"

// An item is a query: orientation (item & 1) of the read selected[item >> 1]. Its seeds are seed_offsets[item >> 1] on, those
// of orientation 0 first; of each the first suffix and their count. Several passes, so that the loads of a query's seeds are
// under way together.
KERNEL void find_matches(i64 begin, i64 end, QUERY_ARGUMENTS, const i32* selected, const i64* seed_offsets,
                         REFERENCE_ARGUMENTS, const suffix_t* suffixes, const suffix_t* prefix_table, suffix_t* ranks,
                         i64* counts, i64 suffix_count, i32 table_bases, i32 seed_bases, i32 stride) {
    Reference reference = REFERENCE;
    Queries queries = QUERIES;
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item >> 1];
        i32 orientation = (i32)(item & 1);
        i64 first = seed_offsets[item >> 1], count = (seed_offsets[(item >> 1) + 1] - first) / 2;
        first += orientation * count;
        Words bases = queries.bases(slot, orientation), mask = queries.mask(slot, orientation);
        bool ambiguous = queries.flags[slot] & READ_AMBIGUOUS;
        for (i64 i = 0; i < count; ++i)
            PREFETCH(&prefix_table[prefix_code(Suffix{bases, i * stride, seed_bases}, table_bases)]);
        for (i64 i = 0; i < count; ++i) {
            Ranks range = prefix_range(prefix_table, Suffix{bases, i * stride, seed_bases}, table_bases);
            if (ambiguous && unambiguous_length(mask, i * stride, seed_bases) < seed_bases) range.high = range.low;
            ranks[first + i] = (suffix_t)range.low;
            counts[first + i] = range.high - range.low;
            PREFETCH(&suffixes[(range.low + range.high) >> 1]);
        }
        for (i64 i = 0; i < count; ++i) {
            i64 middle = (i64)ranks[first + i] + (counts[first + i] >> 1);
            PREFETCH(&reference_words[suffixes[minimum(middle, suffix_count - 1)] >> 5]);
        }
        for (i64 i = 0; i < count; ++i) {
            i64 low = (i64)ranks[first + i];
            Ranks found = {low, low + counts[first + i]};
            found = equal_range(reference, suffixes, Suffix{bases, i * stride, seed_bases}, found);
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
HOST_DEVICE bool is_worth(const Segment& segment, i32 min_score, const Scoring& scoring) {
    return segment.score > scoring.gap(SPREAD) || 2 * segment.score >= min_score + scoring.gap(1);
}

struct Matches {
    const Reference& reference;
    const Queries& queries;
    const i32* selected;
    const i64* seed_offsets;
    i64 reads;
    const suffix_t* suffixes;
    const suffix_t* ranks;
    const i64* ends;  // matches up to and with each seed's
    i32 seed_bases, stride;
    i64 read, seed;  // of the match before

    // The diagonal of a match and its slot; false where its segment is worth nothing, or a seed before it tells the same one.
    HOST_DEVICE bool tells(i64 match, const u64* hashes, i32 min_score, const Scoring& scoring, Diagonal& found,
                           i64& slot) {
        seed = owner(ends, seed_offsets[reads], match, seed);
        read = owner(seed_offsets + 1, reads, seed, read);
        slot = selected[read];
        i64 seeds = (seed_offsets[read + 1] - seed_offsets[read]) / 2, number = seed - seed_offsets[read];
        i32 orientation = number >= seeds, position = (i32)(number - orientation * seeds) * stride;
        i64 place = (i64)suffixes[(i64)ranks[seed] + match - (seed ? ends[seed - 1] : 0)], diagonal = place - position;
        Laid laid = lay(reference, queries, slot, orientation, diagonal, position);
        if (equal_at(laid, position - stride, stride)) return false;
        Segment segment = extend_segment(laid, position, position + seed_bases, queries.lengths[slot], scoring);
        if (!is_worth(segment, min_score, scoring)) return false;
        for (i32 i = (segment.begin + stride - 1) / stride * stride; i < position; i += stride)
            if (equal_at(laid, i, seed_bases)) return false;
        found = Diagonal{diagonal, tie_of(hashes[slot], diagonal), segment, orientation};
        return true;
    }
};

#define MATCH_ARGUMENTS                                                                                          \
    QUERY_ARGUMENTS, const u64 *hashes, const i32 *selected, const i64 *seed_offsets, REFERENCE_ARGUMENTS,       \
        const suffix_t *suffixes, const suffix_t *ranks, const i64 *match_ends, i64 read_count, i64 first_match, \
        i32 seed_bases, i32 stride
#define MATCHES                                                                    \
    Matches{reference, queries,    selected,   seed_offsets, read_count, suffixes, \
            ranks,     match_ends, seed_bases, stride,       -1,         -1}

// An item is a match, counted from first_match on: 1 where it tells a diagonal, else 0.
KERNEL void count_diagonals(i64 begin, i64 end, MATCH_ARGUMENTS, i64* told, i32 min_score, SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Queries queries = QUERIES;
    Matches matches = MATCHES;
    FOR_EACH(item, begin, end) {
        Diagonal found;
        i64 slot;
        told[item] = matches.tells(first_match + item, hashes, min_score, SCORING, found, slot);
    }
}

// told_ends: the inclusive prefix sum of what count_diagonals gave.
KERNEL void list_diagonals(i64 begin, i64 end, MATCH_ARGUMENTS, const i64* told_ends, Diagonal* diagonals, i32* slots,
                           i32 min_score, SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Queries queries = QUERIES;
    Matches matches = MATCHES;
    FOR_EACH(item, begin, end) {
        i64 place = item ? told_ends[item - 1] : 0, slot;
        if (told_ends[item] == place) continue;
        matches.tells(first_match + item, hashes, min_score, SCORING, diagonals[place], slot);
        slots[place] = (i32)slot;
    }
}
