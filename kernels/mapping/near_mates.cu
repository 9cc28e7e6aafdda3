// MateSearch settled mates: reads that no look-ups settled, looked for first where their mates expect them.
//
// Of such a read it is not seen where else it may lie. But elsewhere it makes no fragment with its mate, or its mate lies
// elsewhere too, and each of its pieces that occurs nowhere but here is a difference there. Where all that makes every other
// choice for the pair negligible, the read is not searched any further.
#include "mapping/mates.cuh"
#include "mapping/partition_seeds.cuh"
#include "mapping/diagonal_range.cuh"

// What a read is in that: looked for, or a mate that says where.
enum Role { NO_ROLE = 0, TARGET = 1, ANCHOR = 2 };

// An item is a pair; roles: by slot. searched: whether all reads have been, as if this were not; then the others are done.
KERNEL void assign_roles(Items items, Queries queries, PlacementTable placements, u8* roles OF(reads), i32 searched) {
    FOR_EACH(item, items) {
        i64 slots[2] = {queries.slot_of[2 * item], queries.slot_of[2 * item + 1]};
        bool absent = (queries.flags[slots[0]] | queries.flags[slots[1]]) & READ_ABSENT;
        bool differ = !placements.unresolved_before_search[slots[0]] != !placements.unresolved_before_search[slots[1]];
        for (i64 slot : slots) {
            u8 left = placements.unresolved_before_search[slot];
            roles[slot] = absent || !differ ? NO_ROLE : left ? TARGET : ANCHOR;
            placements.unresolved[slot] = roles[slot] == TARGET || !searched ? left : 0;
        }
    }
}

// An item is a read, selected[item]; found: its diagonals where its mate's window expects it, each tried.
KERNEL void search_near_mates(WarpItems items, Queries queries, Reference reference, InsertSizeTable inserts,
                              Scoring scoring, WindowTable windows, PlacementTable placements,
                              const i32* selected OF(selected), DiagonalTable found) {
    FOR_EACH(item, items) {
        i64 slot = selected[item], record = queries.order[slot];
        Pair pair = pair_of(record >> 1, queries, reference, inserts, windows, placements);
        bool guide_first = record & 1;
        const Mate &guide = guide_first ? pair.first : pair.second, &own = guide_first ? pair.second : pair.first;
        MateSearch beside = {reference, queries, inserts, slot, own.length, own.flipped, guide_first};
        BestDiagonals diagonals;
        if (guide.chosen >= 0)
            beside.search(guide.end(guide.windows[guide.chosen]), guide.windows[guide.chosen], diagonals, scoring);
        diagonals.write(found.rows + item * MAX_DIAGONALS);
        if (warp_lane() == 0) found.counts[item] = diagonals.count, found.unexamined_prefixes[item] = 0;
    }
}

// One of two mates, and what its pieces say of it.
struct Placed {
    const Mate& mate;
    const Scoring& scoring;
    SeedHits found;
    AlignmentCost expense;

    // Phred by which all places off its window's diagonal are less likely than that, at least.
    HOST_DEVICE i32 apart(const ReadTexts& texts, const Queries& queries) const {
        const Window& window = mate.windows[mate.chosen];
        return found.elsewhere(window, texts, queries, scoring, expense.variant).beyond(expense);
    }
    // The same of a settled one. Where few places are all that matter, its windows are these.
    HOST_DEVICE i32 settled_apart(const ReadTexts& texts, const Queries& queries) const {
        i32 phred = apart(texts, queries);
        if (phred >= NEGLIGIBLE) return phred;
        phred = found.unlisted(texts, queries, scoring, expense.variant).beyond(expense);
        for (i32 i = 0; i < mate.count; ++i)
            if (i != mate.chosen) phred = minimum<i32>(phred, mate.deficits[i]);
        return phred;
    }
};

HOST_DEVICE Placed placed(const Mate& mate, const PartitionSeedTable& table, const ReadTexts& texts,
                          const Queries& queries, const Reference& reference, const Scoring& scoring,
                          i32 bases_per_difference) {
    return Placed{
        mate, scoring, SeedHits{table, mate.slot, partition_of(queries, mate.slot, table.min_bases)},
        alignment_cost(mate.windows[mate.chosen], mate.slot, texts, queries, reference, scoring, bases_per_difference)};
}

// An item is a read, selected[item], that has been placed beside its mate; settled: 1 where it need not be searched.
KERNEL void confirm_near_mates(Items items, ReadTexts texts, Queries queries, Reference reference,
                               InsertSizeTable inserts, Scoring scoring, PartitionSeedTable table,
                               const i32* selected OF(items), WindowTable windows, PlacementTable placements,
                               u8* settled OF(items), i32 bases_per_difference) {
    FOR_EACH(item, items) {
        i64 slot = selected[item], record = queries.order[slot];
        Pair pair = pair_of(record >> 1, queries, reference, inserts, windows, placements);
        const Mate &own = record & 1 ? pair.second : pair.first, &guide = record & 1 ? pair.first : pair.second;
        placements.unresolved[slot] = placements.unresolved_before_search[slot], placements.unresolved[guide.slot] = settled[item] = 0;
        if (own.chosen < 0 || own.dropped_deficit < NEGLIGIBLE) continue;
        const Window& window = own.windows[own.chosen];
        if (!is_alignment(window, own.length, own.reversed(window), scoring)) continue;
        Cost cost = pair.cost(pair.first.chosen, pair.second.chosen);
        if (cost.total == IMPROPER) continue;
        Placed first = placed(guide, table, texts, queries, reference, scoring, bases_per_difference);
        Placed second = placed(own, table, texts, queries, reference, scoring, bases_per_difference);
        i32 alone = minimum(first.settled_apart(texts, queries), scoring.unpaired_phred);
        i32 apart = second.apart(texts, queries);
        if (alone + apart - cost.total < NEGLIGIBLE) continue;
        // On an ALT contig a read may have a better place than that, which is reported too.
        if (apart < 0 && reference.has_alternates()) continue;
        placements.unresolved[slot] = 0, settled[item] = 1;
    }
}
