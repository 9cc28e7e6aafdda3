// Search unresolved reads near their resolved mates.
//
// Wherever else such a read may lie, it makes no fragment with its mate there, or its mate lies elsewhere, too; and
// each of its partition seeds that occurs nowhere but here has a difference there. If that makes every other choice for
// the pair negligible, the read is resolved.
#include "mapping/mates.cuh"
#include "mapping/partition_seeds.cuh"
#include "mapping/diagonal_range.cuh"

// The part of a read in the search: it is searched, or its placement predicts where its mate is searched.
enum Role { NO_ROLE = 0, TARGET = 1, ANCHOR = 2 };

// Assign TARGET, ANCHOR or NO_ROLE to both reads of each pair (item), by slot, and set placements.unresolved. seeded: a
// seed search without insert sizes has been done, so only targets remain.
KERNEL void assign_roles(Items items, Queries queries, PlacementTable placements, u8* roles OF(reads), i32 seeded) {
    FOR_EACH(item, items) {
        i64 slots[2] = {queries.slot_of[2 * item], queries.slot_of[2 * item + 1]};
        bool absent = (queries.flags[slots[0]] | queries.flags[slots[1]]) & READ_ABSENT;
        bool differ = !placements.unresolved_before_search[slots[0]] != !placements.unresolved_before_search[slots[1]];
        for (i64 slot : slots) {
            u8 reason = placements.unresolved_before_search[slot];
            roles[slot] = absent || !differ ? NO_ROLE : reason ? TARGET : ANCHOR;
            placements.unresolved[slot] = roles[slot] == TARGET || !seeded ? reason : 0;
        }
    }
}

// Write the best diagonals of each read selected[item] within the insert sizes of its mate's window to `found`.
KERNEL void search_near_mates(WarpItems items, Queries queries, Reference reference, InsertSizeTable inserts,
        Scoring scoring, WindowTable windows, PlacementTable placements, const i32* selected OF(selected),
        DiagonalTable found) {
    FOR_EACH(item, items) {
        i64 slot = selected[item], record = queries.order[slot];
        Pair pair = pair_of(record >> 1, queries, reference, inserts, windows, placements);
        bool anchor_first = record & 1;
        const Mate &anchor = anchor_first ? pair.first : pair.second, &own = anchor_first ? pair.second : pair.first;
        MateSearch mate_search = {reference, queries, inserts, slot, own.length, own.flipped, anchor_first};
        BestDiagonals diagonals;
        if (anchor.chosen >= 0)
            mate_search.search(
                    anchor.end(anchor.windows[anchor.chosen]), anchor.windows[anchor.chosen], diagonals, scoring);
        diagonals.write(found.rows + item * MAX_DIAGONALS);
        if (warp_lane() == 0) found.counts[item] = diagonals.count, found.unexamined_prefixes[item] = 0;
    }
}

// One of two mates, and what its partition seeds say.
struct PlacedMate {
    const Mate& mate;
    const Scoring& scoring;
    SeedHits hits;
    AlignmentCost cost;
    // Return a lower bound of the phred by which placements off its window's diagonal are less likely.
    HOST_DEVICE i32 alternative_margin(const ReadTexts& texts, const Queries& queries) const {
        const Window& window = mate.windows[mate.chosen];
        return hits.bound_off_diagonal(window, texts, queries, scoring, cost.variant_phred).margin_over(cost);
    }
    // Return the same for a resolved read, whose windows may be the few placements that matter.
    HOST_DEVICE i32 resolved_margin(const ReadTexts& texts, const Queries& queries) const {
        i32 phred = alternative_margin(texts, queries);
        if (phred >= NEGLIGIBLE) return phred;
        phred = hits.bound_unlisted(texts, queries, scoring, cost.variant_phred).margin_over(cost);
        for (i32 i = 0; i < mate.count; ++i)
            if (i != mate.chosen) phred = minimum<i32>(phred, mate.deficits[i]);
        return phred;
    }
};

// Return a mate with the hits of its partition seeds and the cost of its chosen window.
HOST_DEVICE PlacedMate placed_mate(const Mate& mate, const PartitionSeedTable& table, const ReadTexts& texts,
        const Queries& queries, const Reference& reference, const Scoring& scoring, i32 bases_per_difference) {
    return PlacedMate{mate, scoring, SeedHits{table, mate.slot, partition_of(queries, mate.slot, table.min_bases)},
            alignment_cost(
                    mate.windows[mate.chosen], mate.slot, texts, queries, reference, scoring, bases_per_difference)};
}

// Resolve each read selected[item], placed near its mate, if all other choices for the pair are negligible. resolved: 1
// if it needs no further search, else 0.
KERNEL void confirm_near_mates(Items items, ReadTexts texts, Queries queries, Reference reference,
        InsertSizeTable inserts, Scoring scoring, PartitionSeedTable table, const i32* selected OF(items),
        WindowTable windows, PlacementTable placements, u8* resolved OF(items), i32 bases_per_difference) {
    FOR_EACH(item, items) {
        i64 slot = selected[item], record = queries.order[slot];
        Pair pair = pair_of(record >> 1, queries, reference, inserts, windows, placements);
        const Mate &own = record & 1 ? pair.second : pair.first, &anchor = record & 1 ? pair.first : pair.second;
        placements.unresolved[slot] = placements.unresolved_before_search[slot],
        placements.unresolved[anchor.slot] = resolved[item] = 0;
        if (own.chosen < 0 || own.dropped_deficit < NEGLIGIBLE) continue;
        const Window& window = own.windows[own.chosen];
        if (!is_alignment(window, own.length, own.reversed(window), scoring)) continue;
        PairCost cost = pair.cost(pair.first.chosen, pair.second.chosen);
        if (cost.total == IMPROPER) continue;
        PlacedMate placed_anchor = placed_mate(anchor, table, texts, queries, reference, scoring, bases_per_difference);
        PlacedMate placed_target = placed_mate(own, table, texts, queries, reference, scoring, bases_per_difference);
        i32 anchor_margin = minimum(placed_anchor.resolved_margin(texts, queries), scoring.unpaired_phred);
        i32 margin = placed_target.alternative_margin(texts, queries);
        if (anchor_margin + margin - cost.total < NEGLIGIBLE) continue;
        // On an ALT contig the read may have a better placement, which is reported, too.
        if (margin < 0 && reference.has_alternates()) continue;
        placements.unresolved[slot] = 0, resolved[item] = 1;
    }
}
