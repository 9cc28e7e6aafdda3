// Choose the placements of two mates together.
//
// The cheapest choice is taken among those in which both mates may be alignments. The likelihoods of all other choices
// sum up to the error that the mapping quality states, so a mate in a repeat is as certain as its partner's placement.
// If both mates lie in one repeat with more copies than windows, a copy in neither's windows counts as one more choice.
#include "mapping/mates.cuh"

const i32 MIN_REPEAT_COPIES = 3;  // minimum number of other fragments to assume that both mates lie in one repeat
const i32 MIN_INSERT_MAPQ = 20;   // minimum MAPQ of both mates to measure an insert size
// Write direction and insert size of each pair's fragment (item), or a NoDirection and 0 without a fragment.
KERNEL void measure_inserts(Items items, Queries queries, Reference reference, WindowTable windows,
        PlacementTable placements, u8* directions OF(items), i32* sizes OF(items)) {
    FOR_EACH(pair, items) {
        Mate first = mate_of(queries, 2 * pair, windows, placements);
        Mate second = mate_of(queries, 2 * pair + 1, windows, placements);
        directions[pair] = UNCERTAIN;
        sizes[pair] = 0;
        if (first.chosen < 0 || second.chosen < 0 ||
                minimum(placements.mapqs[first.slot], placements.mapqs[second.slot]) < MIN_INSERT_MAPQ)
            continue;
        directions[pair] = FAR_APART;
        const Window &a = first.windows[first.chosen], &b = second.windows[second.chosen];
        if (reference.contig_of(a.diagonal + a.start) != reference.contig_of(b.diagonal + b.start)) continue;
        Distance distance = distance_of(first.end(a), second.end(b));
        if (distance.bases > MAX_INSERT_SIZE) continue;
        directions[pair] = (u8)distance.direction;
        sizes[pair] = (i32)distance.bases;
    }
}

// The certainty of one mate's window: every other choice for the pair that places this read elsewhere is a rival.
struct PairMapq {
    const Mate& mate;
    i32 chosen, cost;
    Rivals rivals;
    HOST_DEVICE bool elsewhere(i32 i) const {
        return i != chosen && mate.is_eligible(i) && is_rival(mate.windows[i], mate.windows[chosen], mate.length);
    }
    HOST_DEVICE void add(i32 other_cost) { rivals.add(maximum(other_cost - cost, 0)); }
};

// Set chosen, suboptimal_scores and mapqs of both mates of each pair (item) by the cheapest choice, and properly_paired
// to 1 if that is a fragment. other_fragments: phred of fragments without windows, -1 if not listed.
KERNEL void pair_mates(Items items, Queries queries, Reference reference, InsertSizeTable inserts, Scoring scoring,
        WindowTable windows, PlacementTable placements, const i32* other_fragments OF(items)) {
    FOR_EACH(item, items) {
        Pair pair = pair_of(item, queries, reference, inserts, windows, placements);
        const Mate mates[2] = {pair.first, pair.second};
        if (pair.first.chosen < 0 || pair.second.chosen < 0) continue;
        PairChoice best = cheapest_choice(pair, queries.hashes, scoring);
        placements.properly_paired[pair.first.slot] = placements.properly_paired[pair.second.slot] = best.i >= 0;
        if (best.i < 0) {
            best.i = pair.first.chosen, best.j = pair.second.chosen;
            if (!mates[0].can_pair(best.i, scoring) || !mates[1].can_pair(best.j, scoring)) continue;
        }
        PairMapq pair_mapqs[2] = {{mates[0], best.i, best.cost.total, {0}}, {mates[1], best.j, best.cost.total, {0}}};
        i32 unexamined_deficits[2];
        for (i32 side = 0; side < 2; ++side) {
            const Mate& mate = mates[side];
            for (i32 i = 0; i < mate.count; ++i)
                if (pair_mapqs[side].elsewhere(i)) pair_mapqs[side].add(mate.deficits[i] + scoring.unpaired_phred);
            i32 top = mate.windows[mate.chosen].score;
            unexamined_deficits[side] = unexamined_deficit(
                    windows.unexamined_prefixes[mate.slot], top, placements.variant_phreds[mate.slot], scoring);
        }
        i32 dropped = mates[0].dropped_deficit + mates[1].dropped_deficit, others = 0;
        for (i32 i = 0; i < mates[0].count; ++i) {
            if (!mates[0].is_eligible(i)) continue;
            bool first_differs = pair_mapqs[0].elsewhere(i);
            for (i32 j = 0; j < mates[1].count; ++j) {
                if (!mates[1].is_eligible(j)) continue;
                if (pair.min_cost(i, j) > best.cost.total + NEGLIGIBLE && dropped >= NO_DEFICIT) continue;
                bool second_differs = pair_mapqs[1].elsewhere(j);
                if (!first_differs && !second_differs) continue;
                i32 cost = pair.cost(i, j).total;
                if (cost == IMPROPER) continue;
                ++others;
                if (first_differs) pair_mapqs[0].add(cost);
                if (second_differs) pair_mapqs[1].add(cost);
            }
        }
        for (i32 side = 0; side < 2; ++side) {
            const Mate& mate = mates[side];
            PairMapq& pair_mapq = pair_mapqs[side];
            pair_mapq.add(unexamined_deficits[side] + minimum(unexamined_deficits[1 - side], scoring.unpaired_phred));
            if (other_fragments[item] >= 0) pair_mapq.add(other_fragments[item]);
            else if (others >= MIN_REPEAT_COPIES) pair_mapq.add(dropped);
            i32 second = 0;
            for (i32 i = 0; i < mate.count; ++i)
                if (pair_mapq.elsewhere(i)) second = maximum(second, mate.windows[i].score);
            placements.chosen[mate.slot] = pair_mapq.chosen;
            placements.suboptimal_scores[mate.slot] = second;
            // Without a proper pair a mate is no more certain than alone.
            i32 max_mapq = placements.properly_paired[mate.slot] ? 60 : placements.mapqs[mate.slot];
            placements.mapqs[mate.slot] = (u8)minimum(pair_mapq.rivals.mapping_quality(), max_mapq);
        }
    }
}
