// Mates: two reads with their windows, and the cheapest_choice choice of one window of each.
//
// A choice costs, in phred, what each window explains its read worse than the read's own best one, and what the insert size
// is less likely than the likeliest; without regard to each other the best ones of both cost `unpaired`. Record 2p and
// record 2p + 1 are mates. All is symmetric in them.
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
    i32 dropped_deficit;  // what a place may lose that had no room among its windows; NO_DEFICIT where all had

    HOST_DEVICE bool reversed(const Window& window) const { return (window.orientation != 0) != flipped; }
    HOST_DEVICE FragmentEnd end(const Window& window) const {
        bool back = reversed(window);
        return FragmentEnd{window.diagonal + (back ? length : 0), back};
    }
    // Whether a window is of the kind of the chosen one: on an ALT contig, or on none.
    HOST_DEVICE bool is_eligible(i32 i) const { return windows[i].alternate == windows[chosen].alternate; }
    // Whether it may be an alignment, beside its partner at least: what is none says nothing of the partner's place. Which
    // ends one with gaps reaches for their bonuses is not known yet.
    HOST_DEVICE bool can_pair(i32 i, const Scoring& scoring) const {
        i32 score = windows[i].gapped() ? windows[i].score
                                        : score_without_bonuses(windows[i], length, reversed(windows[i]), scoring);
        return score >= scoring.paired_min_score;
    }
};

HOST_DEVICE Mate mate_of(const Queries& queries, i64 record, const WindowTable& windows,
                         const PlacementTable& placements) {
    i64 slot = queries.slot_of[record];
    i32 best = placements.chosen[slot], count = best < 0 ? 0 : windows.counts[slot];
    Mate mate = {windows.of(slot),
                 placements.deficits + slot * MAX_WINDOWS,
                 slot,
                 count,
                 queries.lengths[slot],
                 best,
                 (queries.flags[slot] & READ_FLIPPED) != 0,
                 NO_DEFICIT};
    // BestDiagonals make room for better ones, and windows for those that promise more; both go by scores without gaps.
    i32 bound = windows.dropped_scores[slot], least = 0;
    i32 eligible = 0, found = minimum(count, MAX_SEED_WINDOWS);
    for (i32 i = 0; i < found; ++i) eligible += mate.is_eligible(i);
    if (count >= MAX_SEED_WINDOWS && 2 * eligible >= MAX_SEED_WINDOWS)
        bound = maximum(bound, mate.windows[MAX_SEED_WINDOWS - 1].ungapped);
    if (!count || !bound) return mate;
    for (i32 i = 0; i < found; ++i) {
        if (!mate.is_eligible(i)) continue;
        i32 score = mate.windows[i].ungapped, deficit = mate.deficits[i];
        if (score < bound || (least && score > least)) continue;
        mate.dropped_deficit = score == least ? minimum(mate.dropped_deficit, deficit) : deficit;
        least = score;
    }
    return mate;
}

// What two windows cost, of it what they lose themselves.
struct Cost {
    i32 total, loss;
};

struct Pair {
    Mate first, second;
    const Reference& reference;
    const InsertSizeTable& inserts;

    // Of windows i and j; IMPROPER where no fragment has such ends.
    HOST_DEVICE Cost cost(i32 i, i32 j) const {
        const Window &a = first.windows[i], &b = second.windows[j];
        Distance distance = distance_of(first.end(a), second.end(b));
        i32 penalty = inserts.penalty(distance);
        if (penalty == IMPROPER ||
            reference.contig_of(a.diagonal + a.begin) != reference.contig_of(b.diagonal + b.begin))
            return Cost{IMPROPER, IMPROPER};
        i32 loss = joint_loss(first.deficits[i], second.deficits[j], distance, first.length, second.length);
        return Cost{loss + penalty, loss};
    }
    // No more than what they cost.
    HOST_DEVICE i32 least_cost(i32 i, i32 j) const { return maximum(first.deficits[i], second.deficits[j]); }
};

HOST_DEVICE Pair pair_of(i64 number, const Queries& queries, const Reference& reference, const InsertSizeTable& inserts,
                         const WindowTable& windows, const PlacementTable& placements) {
    return Pair{mate_of(queries, 2 * number, windows, placements),
                mate_of(queries, 2 * number + 1, windows, placements), reference, inserts};
}

// Two windows and what they cost; -1 for both where there is no choice.
struct PairChoice {
    Cost cost;
    u64 tie;
    i32 i, j;
};

HOST_DEVICE PairChoice cheapest_choice(const Pair& pair, const u64* hashes, const Scoring& scoring) {
    PairChoice best = {{scoring.unpaired_phred, scoring.unpaired_phred}, 0, -1, -1};
    for (i32 i = 0; i < pair.first.count; ++i) {
        if (pair.first.deficits[i] > best.cost.total || !pair.first.can_pair(i, scoring)) continue;
        for (i32 j = 0; j < pair.second.count; ++j) {
            if (pair.least_cost(i, j) > best.cost.total || !pair.second.can_pair(j, scoring)) continue;
            Cost cost = pair.cost(i, j);
            if (cost.total == IMPROPER || cost.total > best.cost.total) continue;
            u64 tie = splitmix64(tie_break(hashes[pair.first.slot], pair.first.windows[i].diagonal) +
                                 tie_break(hashes[pair.second.slot], pair.second.windows[j].diagonal));
            if (cost.total < best.cost.total || best.i < 0 || tie < best.tie) best = PairChoice{cost, tie, i, j};
        }
    }
    return best;
}
