// Matches of the seeds of reads, and lists of the diagonals that they name.
#include "search/matches.cuh"

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

// An item is a pair: where a mate has more than `most` matches, both get none.
KERNEL void limit_matches(i64 begin, i64 end, const i64* seed_offsets OF(2 * items + 1), i64* counts OF(some),
                          i64 most) {
    FOR_EACH(pair, begin, end) {
        i64 first = seed_offsets[2 * pair], middle = seed_offsets[2 * pair + 1], last = seed_offsets[2 * pair + 2];
        i64 of_first = 0, of_second = 0;
        for (i64 seed = first; seed < middle; ++seed) of_first += counts[seed];
        for (i64 seed = middle; seed < last; ++seed) of_second += counts[seed];
        if (maximum(of_first, of_second) <= most) continue;
        for (i64 seed = first; seed < last; ++seed) counts[seed] = 0;
    }
}

// An item is a slot: 1 where its read has a place, else 0.
KERNEL void mark_placed(i64 begin, i64 end, const i32* chosen OF(items), u8* marks OF(items)) {
    FOR_EACH(slot, begin, end) marks[slot] = chosen[slot] >= 0;
}

// An item is a match, counted from first_match on: 1 where it names a diagonal, else 0.
KERNEL void mark_naming(i64 begin, i64 end, Queries queries, Reference reference, SuffixArray index, Scoring scoring,
                        SeedMatches matches, u8* marks OF(items), i64 first_match) {
    MatchWalk walk = {reference, queries, index, matches, -1, -1};
    FOR_EACH(item, begin, end) {
        Diagonal found;
        i64 slot;
        marks[item] = walk.find(first_match + item, scoring, found, slot);
    }
}

// An item is one of the matches that name a diagonal, counted from first_match on. places: the diagonals, counted from that
// on which `shift` bases in front of the reference begin.
KERNEL void list_diagonals(i64 begin, i64 end, Queries queries, Reference reference, SuffixArray index, Scoring scoring,
                           SeedMatches matches, const i32* naming OF(items), Diagonal* diagonals OF(items),
                           i32* slots OF(items), u64* strands OF(items), u64* places OF(items), i64 first_match,
                           i32 shift) {
    MatchWalk walk = {reference, queries, index, matches, -1, -1};
    FOR_EACH(item, begin, end) {
        Diagonal found;
        i64 slot;
        walk.find(first_match + naming[item], scoring, found, slot);
        diagonals[item] = found;
        slots[item] = (i32)slot;
        strands[item] = (u64)(slot << 1 | found.orientation);
        places[item] = (u64)(found.diagonal + shift);
    }
}

// An item is a diagonal of an order.
KERNEL void order_diagonals(i64 begin, i64 end, const u32* order OF(items), const Diagonal* diagonals OF(items),
                            const i32* slots OF(items), Diagonal* ordered OF(items), i32* ordered_slots OF(items)) {
    FOR_EACH(item, begin, end) {
        ordered[item] = diagonals[order[item]];
        ordered_slots[item] = slots[order[item]];
    }
}
