// Rescue mates: search them at the insert-size distance of their partners' windows.
#include "mapping/mates.cuh"
#include "mapping/diagonal_range.cuh"

const i32 MAX_ANCHORS = 8;   // windows of a mate around which its partner is searched
const i32 DOUBT_PHRED = 30;  // phred within which another choice makes the best one doubtful
const i32 MIN_GAIN = 10;     // phred that the placements of the mates must gain to justify a search
// Return true if a mate should be searched near window i of its partner: it would make a better choice than the present
// one, or, if some of its windows were dropped, a choice that is not much worse. loss: phred of the present choice.
HOST_DEVICE bool is_anchor(const Mate& partner, i32 i, i32 loss, const Mate& own) {
    return partner.deficits[i] + MIN_GAIN < loss ||
            (own.dropped_deficit < DOUBT_PHRED && partner.deficits[i] < loss + DOUBT_PHRED);
}

// Mark in `wanted`, by slot, the mates of each pair (item) that should be searched near their mates. choice_deficits:
// phred that the pair's cheapest choice loses.
KERNEL void list_rescues(Items items, Queries queries, Reference reference, InsertSizeTable inserts, Scoring scoring,
        WindowTable windows, PlacementTable placements, u8* wanted OF(reads), i32* choice_deficits OF(items)) {
    FOR_EACH(item, items) {
        Pair pair = pair_of(item, queries, reference, inserts, windows, placements);
        i32 loss = cheapest_choice(pair, queries.hashes, scoring).cost.loss;
        choice_deficits[item] = loss;
        wanted[pair.first.slot] = wanted[pair.second.slot] = 0;
        if ((queries.flags[pair.first.slot] | queries.flags[pair.second.slot]) & READ_ABSENT) continue;
        for (i32 i = 0; i < pair.first.count; ++i)
            if (is_anchor(pair.first, i, loss, pair.second)) wanted[pair.second.slot] = 1;
        for (i32 j = 0; j < pair.second.count; ++j)
            if (is_anchor(pair.second, j, loss, pair.first)) wanted[pair.first.slot] = 1;
    }
}

// Write the best diagonals near the mate's windows of each read selected[item], and the number of its windows before.
KERNEL void rescue_mates(WarpItems items, Queries queries, Reference reference, InsertSizeTable inserts,
        Scoring scoring, WindowTable windows, PlacementTable placements, const i32* selected OF(selected),
        const i32* choice_deficits OF(reads / 2), DiagonalTable found, i32* window_counts OF(selected)) {
    FOR_EACH(item, items) {
        i64 slot = selected[item], record = queries.order[slot];
        bool anchor_first = record & 1;
        Pair pair = pair_of(record >> 1, queries, reference, inserts, windows, placements);
        const Mate& partner = anchor_first ? pair.first : pair.second;
        const Mate& own = anchor_first ? pair.second : pair.first;
        MateSearch mate_search = {reference, queries, inserts, slot, own.length, own.flipped, anchor_first};
        BestDiagonals diagonals;
        i32 anchors = 0;
        for (i32 i = 0; i < partner.count && anchors < MAX_ANCHORS; ++i) {
            if (!is_anchor(partner, i, choice_deficits[record >> 1], own)) continue;
            ++anchors;
            mate_search.search(partner.end(partner.windows[i]), partner.windows[i], diagonals, scoring);
        }
        diagonals.write(found.rows + item * MAX_DIAGONALS);
        if (warp_lane() == 0) found.counts[item] = diagonals.count, window_counts[item] = own.count;
    }
}

// rescued[item] = 1 if a new window of the searched read selected[item] makes a fragment, else 0.
KERNEL void mark_rescued(Items items, PlacementTable placements, const i32* selected OF(items),
        const i32* window_counts OF(items), u8* rescued OF(items)) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        rescued[item] = placements.properly_paired[slot] && placements.chosen[slot] >= window_counts[item];
    }
}
