// Seed matches of reads, and lists of the diagonals they name.
#include "mapping/matches.cuh"

// The `count` seeds of a query, at every stride-th position.
struct QuerySeeds {
    PackedWords bases, mask;
    i64 count;
    i32 seed_bases, stride;
    bool ambiguous;
    HOST_DEVICE auto of(i64 i) const { return QuerySuffix{bases, i * stride, seed_bases}; }
    HOST_DEVICE bool is_ambiguous(i64 i) const {
        return ambiguous && unambiguous_length(mask, i * stride, seed_bases) < seed_bases;
    }
};

// Write for each seed the rank of the first suffix that starts with it, and the number of such suffixes. Separate
// passes let the loads of all seeds overlap.
HOST_DEVICE void match_seeds(
        const QuerySeeds& seeds, const Reference& reference, const SuffixArray& index, suffix_t* ranks, i64* counts) {
    for (i64 i = 0; i < seeds.count; ++i) PREFETCH(&index.prefix_table[prefix_code(seeds.of(i), index.table_bases)]);
    for (i64 i = 0; i < seeds.count; ++i) {
        Ranks range = prefix_range(index.prefix_table, seeds.of(i), index.table_bases);
        if (seeds.is_ambiguous(i)) range.high = range.low;
        ranks[i] = (suffix_t)range.low;
        counts[i] = range.high - range.low;
        PREFETCH(&index.suffixes[(range.low + range.high) >> 1]);
    }
    for (i64 i = 0; i < seeds.count; ++i) {
        i64 middle = (i64)ranks[i] + (counts[i] >> 1);
        PREFETCH(&reference.words[index.suffixes[minimum(middle, index.suffix_count - 1)] >> 5]);
    }
    for (i64 i = 0; i < seeds.count; ++i) {
        i64 low = (i64)ranks[i];
        Ranks found = equal_range(reference, index.suffixes, seeds.of(i), Ranks{low, low + counts[i]});
        ranks[i] = (suffix_t)found.low;
        counts[i] = found.high - found.low;
    }
}

// Match the seeds of each read selected[item] as match_seeds does, from seed_offsets[item] on, orientation 0 first.
KERNEL void find_matches(Items items, Queries queries, Reference reference, SuffixArray index,
        const i32* selected OF(items), const i64* seed_offsets OF(items + 1), suffix_t* ranks OF(seeds),
        i64* counts OF(seeds), i32 seed_bases, i32 stride) {
    FOR_EACH(item, items) {
        i64 slot = selected[item], first = seed_offsets[item], count = (seed_offsets[item + 1] - first) / 2;
        bool ambiguous = queries.flags[slot] & READ_AMBIGUOUS;
        for (i32 orientation = 0; orientation < 2; ++orientation) {
            QuerySeeds seeds = {queries.bases(slot, orientation), queries.mask(slot, orientation), count, seed_bases,
                    stride, ambiguous};
            i64 own = first + orientation * count;
            match_seeds(seeds, reference, index, ranks + own, counts + own);
        }
    }
}

// Clear the match counts of both mates, items 2i and 2i + 1, if either has more than max_matches matches.
KERNEL void limit_matches(Items items, const i64* seed_offsets OF(items + 1), i64* counts OF(any), i64 max_matches) {
    FOR_EACH(item, items) {
        if (item & 1) continue;
        i64 first = seed_offsets[item], middle = seed_offsets[item + 1], last = seed_offsets[item + 2];
        i64 of_first = 0, of_second = 0;
        for (i64 seed = first; seed < middle; ++seed) of_first += counts[seed];
        for (i64 seed = middle; seed < last; ++seed) of_second += counts[seed];
        if (maximum(of_first, of_second) <= max_matches) continue;
        for (i64 seed = first; seed < last; ++seed) counts[seed] = 0;
    }
}

// marks[slot] = 1 if the read of a slot has a placement, else 0.
KERNEL void mark_placed(Items items, const i32* chosen OF(items), u8* marks OF(items)) {
    FOR_EACH(slot, items) marks[slot] = chosen[slot] >= 0;
}

// marks[item] = 1 if seed match first_match + item names a diagonal: its segment is long and in no earlier seed's.
KERNEL void mark_naming_matches(Items items, Queries queries, Reference reference, SuffixArray index, Scoring scoring,
        SeedMatches matches, u8* marks OF(items), i64 first_match) {
    MatchIterator walk = {reference, queries, index, matches, -1, -1};
    FOR_EACH(item, items) {
        Diagonal found;
        i64 slot;
        marks[item] = walk.find(first_match + item, scoring, found, slot);
    }
}

// Write the diagonal, slot and sort keys of each seed match first_match + naming[item], which names a diagonal.
// strands: slot << 1 | orientation; positions: diagonal + shift, not negative.
KERNEL void list_diagonals(Items items, Queries queries, Reference reference, SuffixArray index, Scoring scoring,
        SeedMatches matches, const i32* naming OF(items), Diagonal* diagonals OF(items), i32* slots OF(items),
        u64* strands OF(items), u64* positions OF(items), i64 first_match, i32 shift) {
    MatchIterator walk = {reference, queries, index, matches, -1, -1};
    FOR_EACH(item, items) {
        Diagonal found;
        i64 slot;
        walk.find(first_match + naming[item], scoring, found, slot);
        diagonals[item] = found;
        slots[item] = (i32)slot;
        strands[item] = (u64)(slot << 1 | found.orientation);
        positions[item] = (u64)(found.diagonal + shift);
    }
}

// Gather diagonals and slots in the given order.
KERNEL void order_diagonals(Items items, const u32* order OF(items), const Diagonal* diagonals OF(items),
        const i32* slots OF(items), Diagonal* ordered OF(items), i32* ordered_slots OF(items)) {
    FOR_EACH(item, items) {
        ordered[item] = diagonals[order[item]];
        ordered_slots[item] = slots[order[item]];
    }
}
