// Pairs: the places of two mates chosen together, and mates looked for where their partners expect them.
//
// A choice for a pair is a window of each mate. It costs, in phred, what each window explains its read worse than the
// read's own best one, and what the insert size is less likely than the likeliest; without regard to each other the best
// ones of both cost `unpaired`. The cheapest choice is taken of those where no mate becomes unmapped, and the sum of the
// others, each by its likelihood, is the error that mapping quality stands for: a mate that is in a repeat is as sure as the
// place of its partner. Where both are in one repeat of more copies than they have windows for, a copy that is in neither's
// windows is one choice more.
//
// Record 2p and record 2p + 1 are mates. All is symmetric in them.
#include "search/diagonals.cuh"
#include "search/pairs.cuh"
#include "search/placement.cuh"

const i32 MOST_ANCHORS = 8;         // windows of a mate around which its partner is looked for
const i32 DOUBT = 30;               // phred within which another choice makes the best one doubtful
const i32 WORTH = 10;               // phred that the mates' places have to gain for another choice to be looked for
const i32 LEAST_REPEAT_COPIES = 3;  // other fragments among the windows from which on both mates are in one repeat
const i32 LEAST_RUN = 12;  // equal bases from which a segment is extended: chance gives them once in a hundred regions
const i32 SURE = 20;       // MAPQ from which on a pair shows an insert size

// One mate of a pair, and its windows.
struct Mate {
    const Window* windows;
    const i16* deficits;
    i64 slot;
    i32 count, length, chosen;
    bool flipped;
    i32 untested_deficit;  // what a place may lose that had no room among its windows; NO_DEFICIT where all had

    HOST_DEVICE bool reversed(const Window& window) const { return (window.orientation != 0) != flipped; }
    HOST_DEVICE FragmentEnd end(const Window& window) const {
        bool back = reversed(window);
        return FragmentEnd{window.diagonal + (back ? length : 0), back};
    }
    // Whether its alignment may score so much; which ends one with gaps reaches for their bonuses is not known yet.
    HOST_DEVICE bool reaches(i32 i, i32 score, const Scoring& scoring) const {
        return (windows[i].gapped() ? windows[i].score : least_score(windows[i], length, scoring)) >= score;
    }
    // Whether the read is no less reported there than at its best place.
    HOST_DEVICE bool keeps(i32 i, const Scoring& scoring) const {
        return reaches(i, scoring.joint_score, scoring) || !reaches(chosen, scoring.joint_score, scoring);
    }
};

HOST_DEVICE Mate mate_of(const Queries& queries, i64 record, const WindowTable& windows,
                         const PlacementTable& placements) {
    i64 slot = queries.slot_of[record];
    i32 best = placements.chosen[slot], count = best < 0 ? 0 : windows.counts[slot];
    Mate mate = {windows.of(slot),
                 placements.deficits + slot * WINDOWS,
                 slot,
                 count,
                 queries.lengths[slot],
                 best,
                 (queries.flags[slot] & READ_FLIPPED) != 0,
                 NO_DEFICIT};
    if (count < FOUND_WINDOWS) return mate;
    i32 least = mate.windows[FOUND_WINDOWS - 1].ungapped;  // room goes by the scores without gaps
    for (i32 i = 0; i < FOUND_WINDOWS; ++i)
        if (mate.windows[i].ungapped == least)
            mate.untested_deficit = minimum(mate.untested_deficit, (i32)mate.deficits[i]);
    return mate;
}

struct Pair {
    Mate first, second;
    const Reference& reference;
    const Inserts& inserts;

    // Phred of the insert size of two windows; FAR where no fragment has such ends.
    HOST_DEVICE i32 distance_penalty(const Window& a, const Window& b) const {
        i32 penalty = inserts.penalty(distance_of(first.end(a), second.end(b)));
        if (penalty == FAR) return FAR;
        return reference.contig_of(a.diagonal + a.begin) == reference.contig_of(b.diagonal + b.begin) ? penalty : FAR;
    }
};

// Two windows and their cost, of it what they lose themselves; -1 for both where there is no choice.
struct Choice {
    i32 cost, loss;
    u64 tie;
    i32 i, j;
};

HOST_DEVICE Choice cheapest(const Pair& pair, const u64* hashes, const Scoring& scoring) {
    Choice best = {scoring.unpaired_deficit, scoring.unpaired_deficit, 0, -1, -1};
    for (i32 i = 0; i < pair.first.count; ++i) {
        if (pair.first.deficits[i] > best.cost || !pair.first.keeps(i, scoring)) continue;
        for (i32 j = 0; j < pair.second.count; ++j) {
            i32 loss = pair.first.deficits[i] + pair.second.deficits[j];
            if (loss > best.cost || !pair.second.keeps(j, scoring)) continue;
            const Window &a = pair.first.windows[i], &b = pair.second.windows[j];
            i32 distance = pair.distance_penalty(a, b), cost = loss + distance;
            if (distance == FAR || cost > best.cost) continue;
            u64 tie = mix(tie_of(hashes[pair.first.slot], a.diagonal) + tie_of(hashes[pair.second.slot], b.diagonal));
            if (cost < best.cost || best.i < 0 || tie < best.tie) best = Choice{cost, loss, tie, i, j};
        }
    }
    return best;
}

// An item is a pair, of which both mates are placed for sure: directions[pair] and sizes[pair] are its fragment's;
// else the direction is a NoDirection.
KERNEL void measure_inserts(i64 begin, i64 end, Queries queries, Reference reference, WindowTable windows,
                            PlacementTable placements, u8* directions OF(items), i32* sizes OF(items)) {
    FOR_EACH(pair, begin, end) {
        Mate first = mate_of(queries, 2 * pair, windows, placements);
        Mate second = mate_of(queries, 2 * pair + 1, windows, placements);
        directions[pair] = UNSURE;
        sizes[pair] = 0;
        if (first.chosen < 0 || second.chosen < 0 ||
            minimum(placements.mapqs[first.slot], placements.mapqs[second.slot]) < SURE)
            continue;
        directions[pair] = FAR_APART;
        const Window &a = first.windows[first.chosen], &b = second.windows[second.chosen];
        if (reference.contig_of(a.diagonal + a.begin) != reference.contig_of(b.diagonal + b.begin)) continue;
        Distance distance = distance_of(first.end(a), second.end(b));
        if (distance.bases > LONGEST_INSERT) continue;
        directions[pair] = (u8)distance.direction;
        sizes[pair] = (i32)distance.bases;
    }
}

// Whether a mate is to be looked for beside window i of its partner: it would make a better choice than the pair has, or,
// where the mate has more places than windows, one that is not much worse.
HOST_DEVICE bool is_anchor(const Mate& partner, i32 i, i32 loss, const Mate& own) {
    return partner.deficits[i] + WORTH < loss || (own.untested_deficit < DOUBT && partner.deficits[i] < loss + DOUBT);
}

// An item is a pair; wanted, by slot: 1 where the read shall be looked for beside its mate.
KERNEL void list_rescues(i64 begin, i64 end, Queries queries, Reference reference, Inserts inserts, Scoring scoring,
                         WindowTable windows, PlacementTable placements, u8* wanted OF(reads),
                         i32* choice_deficits OF(items)) {
    FOR_EACH(item, begin, end) {
        Pair pair = {mate_of(queries, 2 * item, windows, placements),
                     mate_of(queries, 2 * item + 1, windows, placements), reference, inserts};
        i32 loss = cheapest(pair, queries.hashes, scoring).loss;
        choice_deficits[item] = loss;
        wanted[pair.first.slot] = wanted[pair.second.slot] = 0;
        if ((queries.flags[pair.first.slot] | queries.flags[pair.second.slot]) & READ_ABSENT) continue;
        for (i32 i = 0; i < pair.first.count; ++i)
            if (is_anchor(pair.first, i, loss, pair.second)) wanted[pair.second.slot] = 1;
        for (i32 j = 0; j < pair.second.count; ++j)
            if (is_anchor(pair.second, j, loss, pair.first)) wanted[pair.first.slot] = 1;
    }
}

// The diagonals of one read that lie in [low, high], on one strand.
struct Stretch {
    const Reference& reference;
    const Queries& queries;
    i64 slot, contig_begin, contig_end;
    u64 hash;
    i32 orientation, length;

    // The longest run of equal bases on this diagonal; false where none is long.
    HOST_DEVICE bool longest_run(const Laid& laid, i32& begin, i32& end) const {
        begin = end = laid.begin;
        for (i32 i = laid.begin; i + LEAST_RUN <= laid.end; i += 32 - LEAST_RUN) {
            i32 bases = minimum(laid.end - i, 32);
            u64 unclear, marks = laid.differing(i, unclear);
            u64 runs =
                ~marks & LOW_BITS & first_bases(bases);  // then, at their first bases, those of 2, 4, 8 and LEAST_RUN
            runs &= runs << 2;
            u64 four = runs & runs << 4;
            if (!(four & four << 8 & four << 2 * (LEAST_RUN - 4))) continue;
            for (i32 from = 0; from < bases;) {
                i32 to = minimum(first_marked(marks & ~first_bases(from)), bases);
                if (to - from > end - begin) begin = i + from, end = i + to;
                from = to + 1;
            }
        }
        return end - begin >= LEAST_RUN;
    }
    HOST_DEVICE void search(i64 low, i64 high, Diagonals& diagonals, const Scoring& scoring) const {
        low = maximum(low, contig_begin - length + LEAST_RUN);
        high = minimum(high, contig_end - LEAST_RUN);
        for (i64 round = low; round <= high; round += GROUP_WIDTH) {
            i64 diagonal = round + group_lane();
            Diagonal fresh = {};
            i32 begin = 0, end = 0;
            bool real = diagonal <= high;
            if (real) {
                i32 anchor = (i32)clamp(contig_begin - diagonal, (i64)0, (i64)length - 1);
                Laid laid = lay(reference, queries, slot, orientation, diagonal, anchor);
                real = longest_run(laid, begin, end);
                if (real)
                    fresh = Diagonal{diagonal, tie_of(hash, diagonal),
                                     extend_segment(laid, begin, end, length, scoring), orientation};
            }
            if (group_any(real)) diagonals.offer(fresh, real);
        }
    }
};

// An item is a read, selected[item]; found: the diagonals near its mate's windows at which it is found.
KERNEL void rescue_mates(i64 begin, i64 end, Queries queries, Reference reference, Inserts inserts, Scoring scoring,
                         WindowTable windows, PlacementTable placements, const i32* selected OF(selected),
                         const i32* choice_deficits OF(reads / 2), DiagonalTable found) {
    FOR_EACH_GROUP(item, begin, end) {
        i64 slot = selected[item], record = queries.order[slot];
        bool anchor_first = record & 1;
        Pair pair = {mate_of(queries, record & ~1ll, windows, placements),
                     mate_of(queries, record | 1, windows, placements), reference, inserts};
        const Mate& partner = anchor_first ? pair.first : pair.second;
        const Mate& own = anchor_first ? pair.second : pair.first;
        Diagonals diagonals;
        i32 anchors = 0;
        for (i32 i = 0; i < partner.count && anchors < MOST_ANCHORS; ++i) {
            if (!is_anchor(partner, i, choice_deficits[record >> 1], own)) continue;
            ++anchors;
            const Window& window = partner.windows[i];
            FragmentEnd anchor = partner.end(window);
            i64 contig = reference.contig_of(window.diagonal + window.begin);
            for (i32 direction = 0; direction < DIRECTIONS; ++direction) {
                i64 low = inserts.lows[direction], high = inserts.highs[direction];
                i64 sign = Inserts::sign(direction, anchor, anchor_first);
                if (low > high) continue;
                bool reversed = anchor.reversed != (direction == FR || direction == RF);
                i64 shift = anchor.place - (reversed ? own.length : 0);
                Stretch stretch = {reference,
                                   queries,
                                   slot,
                                   reference.contig_starts[contig],
                                   reference.contig_starts[contig + 1] - 1,
                                   queries.hashes[slot],
                                   reversed != own.flipped,
                                   own.length};
                stretch.search(shift + (sign > 0 ? low : -high), shift + (sign > 0 ? high : -low), diagonals, scoring);
            }
        }
        diagonals.write(found.rows + item * KEPT);
        if (group_lane() == 0) found.counts[item] = diagonals.count;
    }
}

// How sure one mate's window is: every other choice for the pair that has this read elsewhere is a rival.
struct PairMapq {
    const Mate& mate;
    i32 chosen, cost;
    Rivals rivals;

    HOST_DEVICE bool elsewhere(i32 i) const {
        return i != chosen && is_rival(mate.windows[i], mate.windows[chosen], mate.length);
    }
    HOST_DEVICE void add(i32 other_cost) { rivals.add(maximum(other_cost - cost, 0)); }
};

// An item is a pair: chosen, seconds and mapqs of both mates, by slot, are replaced by those of the cheapest choice; joint
// becomes 1 where that is a fragment.
KERNEL void pair_mates(i64 begin, i64 end, Queries queries, Reference reference, Inserts inserts, Scoring scoring,
                       WindowTable windows, PlacementTable placements) {
    FOR_EACH(item, begin, end) {
        Pair pair = {mate_of(queries, 2 * item, windows, placements),
                     mate_of(queries, 2 * item + 1, windows, placements), reference, inserts};
        const Mate mates[2] = {pair.first, pair.second};
        if (pair.first.chosen < 0 || pair.second.chosen < 0) continue;
        Choice best = cheapest(pair, queries.hashes, scoring);
        placements.joint[pair.first.slot] = placements.joint[pair.second.slot] = best.i >= 0;
        if (best.i < 0) best.i = pair.first.chosen, best.j = pair.second.chosen;
        PairMapq pair_mapqs[2] = {{mates[0], best.i, best.cost, {0}}, {mates[1], best.j, best.cost, {0}}};
        i32 unexamined_deficits[2];
        for (i32 side = 0; side < 2; ++side) {
            const Mate& mate = mates[side];
            for (i32 i = 0; i < mate.count; ++i)
                if (pair_mapqs[side].elsewhere(i)) pair_mapqs[side].add(mate.deficits[i] + scoring.unpaired_deficit);
            i32 top = mate.windows[mate.chosen].score;
            unexamined_deficits[side] =
                unexamined_deficit(windows.unexamined[mate.slot], top, placements.variants[mate.slot], scoring);
        }
        i32 untested = mates[0].untested_deficit + mates[1].untested_deficit, others = 0;
        for (i32 i = 0; i < mates[0].count; ++i) {
            bool first_elsewhere = pair_mapqs[0].elsewhere(i);
            for (i32 j = 0; j < mates[1].count; ++j) {
                i32 cost = mates[0].deficits[i] + mates[1].deficits[j];
                if (cost > best.cost + NEGLIGIBLE && untested >= NO_DEFICIT) continue;
                bool second_elsewhere = pair_mapqs[1].elsewhere(j);
                if (!first_elsewhere && !second_elsewhere) continue;
                i32 distance = pair.distance_penalty(mates[0].windows[i], mates[1].windows[j]);
                if (distance == FAR) continue;
                ++others;
                if (first_elsewhere) pair_mapqs[0].add(cost + distance);
                if (second_elsewhere) pair_mapqs[1].add(cost + distance);
            }
        }
        for (i32 side = 0; side < 2; ++side) {
            const Mate& mate = mates[side];
            PairMapq& pair_mapq = pair_mapqs[side];
            pair_mapq.add(unexamined_deficits[side] + minimum(unexamined_deficits[1 - side], scoring.unpaired_deficit));
            if (others >= LEAST_REPEAT_COPIES) pair_mapq.add(untested);
            i32 second = 0;
            for (i32 i = 0; i < mate.count; ++i)
                if (pair_mapq.elsewhere(i)) second = maximum(second, mate.windows[i].score);
            placements.chosen[mate.slot] = pair_mapq.chosen;
            placements.seconds[mate.slot] = second;
            placements.mapqs[mate.slot] = (u8)pair_mapq.rivals.mapping_quality();
        }
    }
}
