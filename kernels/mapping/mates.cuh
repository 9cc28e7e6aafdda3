// Mates: two reads with their windows, and the cheapest choice of one window of each.
//
// A choice costs, in phred, by how much each window explains its read worse than the read's best window, and by how
// much the insert size is less likely than the best. Records 2p and 2p + 1 are mates; everything is symmetric in them.
#pragma once
#include "mapping/pairs.cuh"
#include "mapping/placement.cuh"

// One mate of a pair, and its windows.
struct Mate {
    const Window* windows;
    const i16* deficits;
    i64 slot;
    i32 count, length, chosen;
    bool flipped;
    i32 dropped_deficit;  // deficit that a dropped placement may have at least; NO_DEFICIT if none was dropped
    HOST_DEVICE bool reversed(const Window& window) const { return (window.orientation != 0) != flipped; }
    HOST_DEVICE FragmentEnd end(const Window& window) const {
        bool is_reversed = reversed(window);
        return FragmentEnd{window.diagonal + (is_reversed ? length : 0), is_reversed};
    }
    // Return true if a window is of the same kind as the chosen one: on an ALT contig, or not.
    HOST_DEVICE bool is_eligible(i32 i) const { return windows[i].alternate == windows[chosen].alternate; }
    // Return true if a window may be an alignment, at least with its mate's support; a window that cannot be one says
    // nothing about the mate's placement. Which ends a gapped window reaches for their bonuses is not known yet.
    HOST_DEVICE bool can_pair(i32 i, const Scoring& scoring) const {
        i32 score = windows[i].gapped() ? windows[i].score
                                        : score_without_bonuses(windows[i], length, reversed(windows[i]), scoring);
        return score >= scoring.paired_min_score;
    }
};

// Return a read as a mate: its windows, and a bound for placements that have no window.
HOST_DEVICE Mate mate_of(
        const Queries& queries, i64 record, const WindowTable& windows, const PlacementTable& placements) {
    i64 slot = queries.slot_of[record];
    i32 best = placements.chosen[slot], count = best < 0 ? 0 : windows.counts[slot];
    Mate mate = {windows.of(slot), placements.deficits + slot * MAX_WINDOWS, slot, count, queries.lengths[slot], best,
            (queries.flags[slot] & READ_FLIPPED) != 0, NO_DEFICIT};
    // Diagonals are displaced by better ones, windows by more promising ones; both are ranked by scores without gaps.
    i32 dropped_bound = windows.dropped_scores[slot], lowest_score = 0;
    i32 eligible = 0, found = minimum(count, MAX_SEED_WINDOWS);
    for (i32 i = 0; i < found; ++i) eligible += mate.is_eligible(i);
    if (count >= MAX_SEED_WINDOWS && 2 * eligible >= MAX_SEED_WINDOWS)
        dropped_bound = maximum(dropped_bound, mate.windows[MAX_SEED_WINDOWS - 1].ungapped);
    if (!count || !dropped_bound) return mate;
    for (i32 i = 0; i < found; ++i) {
        if (!mate.is_eligible(i)) continue;
        i32 score = mate.windows[i].ungapped, deficit = mate.deficits[i];
        if (score < dropped_bound || (lowest_score && score > lowest_score)) continue;
        mate.dropped_deficit = score == lowest_score ? minimum(mate.dropped_deficit, deficit) : deficit;
        lowest_score = score;
    }
    return mate;
}

// The cost of two windows; loss: the part without the insert size.
struct PairCost {
    i32 total, loss;
};

struct Pair {
    Mate first, second;
    const Reference& reference;
    const InsertSizeTable& inserts;
    // Return the cost of windows i and j; IMPROPER if they make no fragment of the library.
    HOST_DEVICE PairCost cost(i32 i, i32 j) const {
        const Window &a = first.windows[i], &b = second.windows[j];
        Distance distance = distance_of(first.end(a), second.end(b));
        i32 penalty = inserts.penalty(distance);
        if (penalty == IMPROPER ||
                reference.contig_of(a.diagonal + a.start) != reference.contig_of(b.diagonal + b.start))
            return PairCost{IMPROPER, IMPROPER};
        i32 loss = joint_loss(first.deficits[i], second.deficits[j], distance, first.length, second.length);
        return PairCost{loss + penalty, loss};
    }
    // Return a lower bound of the cost.
    HOST_DEVICE i32 min_cost(i32 i, i32 j) const { return maximum(first.deficits[i], second.deficits[j]); }
};

// Return pair `number`, records 2 * number and 2 * number + 1.
HOST_DEVICE Pair pair_of(i64 number, const Queries& queries, const Reference& reference, const InsertSizeTable& inserts,
        const WindowTable& windows, const PlacementTable& placements) {
    return Pair{mate_of(queries, 2 * number, windows, placements),
            mate_of(queries, 2 * number + 1, windows, placements), reference, inserts};
}

// Two windows and their cost; i = j = -1 if no choice is cheaper than unpaired placements.
struct PairChoice {
    PairCost cost;
    u64 tie;
    i32 i, j;
};

// Return the windows of both mates with the lowest total cost. hashes: by slot, of the reads, to break ties.
HOST_DEVICE PairChoice cheapest_choice(const Pair& pair, const u64* hashes, const Scoring& scoring) {
    PairChoice best = {{scoring.unpaired_phred, scoring.unpaired_phred}, 0, -1, -1};
    for (i32 i = 0; i < pair.first.count; ++i) {
        if (pair.first.deficits[i] > best.cost.total || !pair.first.can_pair(i, scoring)) continue;
        for (i32 j = 0; j < pair.second.count; ++j) {
            if (pair.min_cost(i, j) > best.cost.total || !pair.second.can_pair(j, scoring)) continue;
            PairCost cost = pair.cost(i, j);
            if (cost.total == IMPROPER || cost.total > best.cost.total) continue;
            u64 tie = splitmix64(tie_break(hashes[pair.first.slot], pair.first.windows[i].diagonal) +
                    tie_break(hashes[pair.second.slot], pair.second.windows[j].diagonal));
            if (cost.total < best.cost.total || best.i < 0 || tie < best.tie) best = PairChoice{cost, tie, i, j};
        }
    }
    return best;
}
