// Fragments of two mates that both have more placements than windows.
//
// If both mates lie in repeats, few of their many placements are a fragment apart, and the windows of each mate alone
// include hardly any of these. So all placements are listed in the order of their positions, both lists are scanned in
// parallel, and the placements of the best fragments become windows; the other fragments count as one more rival.
#include "mapping/matches.cuh"
#include "mapping/mates.cuh"
#include "mapping/diagonal_range.cuh"

const i32 KEPT_FRAGMENTS = 4;    // fragments that get windows; the same number of windows remains for mates with gaps
const i32 MAX_FRAGMENTS = 4096;  // of a pair; mates in satellite repeats have a fragment at nearly every position
const i32 END_BITS = 36;         // bits of a position in a key
// Mark both mates of a pair (item) if fragments without windows, perhaps hundreds, may rival the cheapest choice.
KERNEL void mark_repeat_pairs(Items items, Queries queries, Reference reference, InsertSizeTable inserts,
        Scoring scoring, WindowTable windows, PlacementTable placements, u8* marks OF(2 * items)) {
    FOR_EACH(item, items) {
        Pair pair = pair_of(item, queries, reference, inserts, windows, placements);
        i32 smaller = minimum(pair.first.dropped_deficit, pair.second.dropped_deficit);
        i32 larger = maximum(pair.first.dropped_deficit, pair.second.dropped_deficit);
        marks[2 * item] = marks[2 * item + 1] = larger < NO_DEFICIT &&
                smaller + larger < cheapest_choice(pair, queries.hashes, scoring).cost.total + NEGLIGIBLE;
    }
}

// slots[item] = the slot of the record mates[item].
KERNEL void mates_to_slots(Items items, Queries queries, const i32* mates OF(items), i32* slots OF(items)) {
    FOR_EACH(item, items) slots[item] = queries.slot_of[mates[item]];
}

// Placements of reads: the fragment ends, and the phred lost there. Reads are numbered as selected, mates in a row.
struct RepeatPlacements {
    const u64* keys OF(repeat_placements);  // read, strand and end, sorted; unused rows have the largest key
    const u32* losses OF(repeat_placements);
    i64 placement_count;
    // Return the first row of a read and strand with an end at or after a position.
    HOST_DEVICE i64 lower_bound(i64 read, bool reversed, i64 position) const {
        u64 key = ((u64)read << 1 | reversed) << END_BITS | (u64)position;
        return partition_point(0, placement_count, [&](i64 i) { return keys[i] < key; });
    }
};

// Return by how many phred a match's diagonal explains its read worse than the chosen window, or -1 from unpaired_phred
// on. Scores without gaps are compared, because all copies of a repeat need the gap that the best placement has.
HOST_DEVICE i32 loss_of(const Diagonal& diagonal, i64 slot, const WindowTable& windows,
        const PlacementTable& placements, const Scoring& scoring) {
    const Window& chosen = windows.of(slot)[placements.chosen[slot]];
    if (diagonal.alternate != chosen.alternate) return -1;
    i32 loss = maximum(
            points_to_phred(chosen.ungapped - diagonal.segment.score, placements.variant_phreds[slot], scoring), 0);
    return loss < scoring.unpaired_phred ? loss : -1;
}

// counts[item] = 1 if seed match `item` names a placement whose loss counts (see loss_of), else 0.
KERNEL void count_placements(Items items, Queries queries, Reference reference, SuffixArray index, Scoring scoring,
        SeedMatches matches, WindowTable windows, PlacementTable placements, i64* counts OF(items)) {
    MatchIterator iterator = {reference, queries, index, matches, -1, -1};
    FOR_EACH(item, items) {
        Diagonal diagonal;
        i64 slot;
        counts[item] = iterator.find(item, scoring, diagonal, slot) &&
                loss_of(diagonal, slot, windows, placements, scoring) >= 0;
    }
}

// Write key, (read << 1 | reversed) << END_BITS | fragment end plus read length, and loss in phred of each placement
// that count_placements counted. An item is a seed match. ends: inclusive prefix sum of the counts.
KERNEL void list_placements(Items items, Queries queries, Reference reference, SuffixArray index, Scoring scoring,
        SeedMatches matches, WindowTable windows, PlacementTable placements, const i64* ends OF(items),
        u64* keys OF(repeat_placements), u32* losses OF(repeat_placements)) {
    MatchIterator iterator = {reference, queries, index, matches, -1, -1};
    FOR_EACH(item, items) {
        i64 row = item ? ends[item - 1] : 0, slot;
        if (ends[item] == row) continue;
        Diagonal diagonal;
        iterator.find(item, scoring, diagonal, slot);
        i32 length = queries.lengths[slot];
        bool reversed = queries.reversed(slot, diagonal.orientation);
        // Keys are positive: a diagonal starts less than a read before the reference.
        u64 at = (u64)(diagonal.diagonal + (reversed ? length : 0) + length);
        keys[row] = ((u64)iterator.read << 1 | reversed) << END_BITS | at;
        losses[row] = (u32)loss_of(diagonal, slot, windows, placements, scoring);
    }
}

// A mate of a pair whose placements are joined.
struct RepeatMate {
    i64 read, slot;
    i32 length;
    bool flipped;
    HOST_DEVICE i64 diagonal(FragmentEnd at) const { return at.position - (at.reversed ? length : 0); }
};

// Return the mate in a slot; read: its index among the selected reads.
HOST_DEVICE RepeatMate repeat_mate(const Queries& queries, i64 read, i64 slot) {
    return RepeatMate{read, slot, queries.lengths[slot], (queries.flags[slot] & READ_FLIPPED) != 0};
}
// A placement of each mate, and the cost of choosing both.
struct Fragment {
    i32 cost;
    u64 tie;
    FragmentEnd first, second;
    HOST_DEVICE bool is_before(const Fragment& other) const {
        return cost != other.cost ? cost < other.cost : tie < other.tie;
    }
};

// The best fragments of a pair, independent of their order, and the sum of the likelihoods of all.
struct BestFragments {
    Fragment kept[KEPT_FRAGMENTS];
    i32 count, total;
    u64 likelihoods;  // of all fragments
    HOST_DEVICE void keep(const Fragment& fragment) {
        i32 rank = count;
        while (rank > 0 && fragment.is_before(kept[rank - 1])) --rank;
        if (rank == KEPT_FRAGMENTS) return;
        count = minimum(count + 1, KEPT_FRAGMENTS);
        for (i32 i = count - 1; i > rank; --i) kept[i] = kept[i - 1];
        kept[rank] = fragment;
    }
    HOST_DEVICE void add(const Fragment& fragment) {
        ++total;
        if (fragment.cost < NEGLIGIBLE) likelihoods += likelihood(fragment.cost);
        keep(fragment);
    }
    // Merge the results of all lanes of the warp into each lane.
    HOST_DEVICE void gather() {
        for (i32 step = 1; step < WARP_WIDTH; step *= 2) {
            BestFragments other = warp_shuffle(*this, warp_lane() ^ step);
            total += other.total;
            likelihoods += other.likelihoods;
            for (i32 i = 0; i < other.count; ++i) keep(other.kept[i]);
        }
    }
};

// The fragments of a pair; the lanes of a warp share the placements of the first mate.
struct FragmentJoiner {
    const Reference& reference;
    const InsertSizeTable& inserts;
    const Queries& queries;
    const RepeatPlacements& repeat_placements;
    RepeatMate first, second;
    BestFragments best;
    HOST_DEVICE i64 contig(const RepeatMate& mate, FragmentEnd at) const {
        return reference.contig_of(maximum(mate.diagonal(at) + mate.length / 2, (i64)0));
    }
    HOST_DEVICE void add(FragmentEnd one, FragmentEnd other, i32 one_loss, i32 other_loss) {
        Distance distance = distance_of(one, other);
        i32 penalty = inserts.penalty(distance);
        if (penalty == IMPROPER || contig(first, one) != contig(second, other)) return;
        u64 tie = splitmix64(tie_break(queries.hashes[first.slot], first.diagonal(one)) +
                tie_break(queries.hashes[second.slot], second.diagonal(other)));
        i32 loss = joint_loss(one_loss, other_loss, distance, first.length, second.length);
        best.add(Fragment{loss + penalty, tie, one, other});
    }
    // Add all fragments of one direction whose first mate lies on a strand, with insert sizes of the library.
    HOST_DEVICE void join(i32 direction, bool reversed) {
        i64 low = inserts.lows[direction], high = inserts.highs[direction];
        if (low > high) return;
        bool other = reversed != (direction == FR || direction == RF);
        if (InsertSizeTable::sign(direction, FragmentEnd{0, reversed}, true) < 0) low = -low, high = -high;
        const u64 mask = ((u64)1 << END_BITS) - 1;
        i64 i = repeat_placements.lower_bound(first.read, reversed, 0),
            last = repeat_placements.lower_bound(first.read, reversed, mask);
        i64 end = repeat_placements.lower_bound(second.read, other, mask);
        for (i += warp_lane(); i < last && best.total <= MAX_FRAGMENTS; i += WARP_WIDTH) {
            FragmentEnd one = {(i64)(repeat_placements.keys[i] & mask) - first.length, reversed};
            i64 start = one.position + minimum(low, high) + second.length;
            i64 stop = one.position + maximum(low, high) + second.length;
            i64 from = repeat_placements.lower_bound(second.read, other, maximum(start, (i64)0));
            for (i64 j = from;
                    j < end && (i64)(repeat_placements.keys[j] & mask) <= stop && best.total <= MAX_FRAGMENTS; ++j)
                add(one, FragmentEnd{(i64)(repeat_placements.keys[j] & mask) - second.length, other},
                        (i32)repeat_placements.losses[i], (i32)repeat_placements.losses[j]);
        }
    }
    // Write the diagonals of one mate in the best fragments; return their number.
    HOST_DEVICE i32 write(
            const RepeatMate& mate, FragmentEnd Fragment::* end, Diagonal* rows, const Scoring& scoring) const {
        i32 written = 0;
        for (i32 i = 0; i < best.count; ++i) {
            FragmentEnd at = best.kept[i].*end;
            i64 home = contig(mate, at);
            DiagonalRange range =
                    diagonal_range(reference, queries, mate.slot, home, at.reversed != mate.flipped, mate.length);
            Diagonal diagonal;
            if (!range.verify(mate.diagonal(at), diagonal, scoring)) continue;
            i32 same = 0;
            while (same < written && !rows[same].ends_alike(diagonal)) ++same;
            if (same == written) rows[written++] = diagonal;
        }
        return written;
    }
};

// Join the placements of repeat pairs' mates. One item per mate, record mates[item]; the item of the first mate writes
// the diagonals of the pair's best fragments for both mates to `found`, and to other_fragments[pair] the phred of all
// other fragments together, unless there are no fragments or too many.
KERNEL void join_fragments(WarpItems items, Queries queries, Reference reference, InsertSizeTable inserts,
        Scoring scoring, RepeatPlacements repeat_placements, const i32* mates OF(items), DiagonalTable found,
        i32* other_fragments OF(reads / 2)) {
    FOR_EACH(item, items) {
        if (item & 1) continue;
        i64 pair = mates[item] >> 1, slots[2] = {queries.slot_of[2 * pair], queries.slot_of[2 * pair + 1]};
        RepeatMate first = repeat_mate(queries, item, slots[0]), second = repeat_mate(queries, item + 1, slots[1]);
        FragmentJoiner joiner = {reference, inserts, queries, repeat_placements, first, second, {}};
        BestFragments& best = joiner.best;
        for (i32 direction = 0; direction < DIRECTIONS; ++direction)
            for (i32 strand = 0; strand < 2; ++strand) joiner.join(direction, strand);
        best.gather();
        if (warp_lane() != 0) continue;
        found.counts[item] = found.counts[item + 1] = 0;
        if (best.total == 0 || best.total > MAX_FRAGMENTS) continue;
        u64 rest = best.likelihoods;
        for (i32 i = 0; i < best.count; ++i)
            if (best.kept[i].cost < NEGLIGIBLE) rest -= likelihood(best.kept[i].cost);
        other_fragments[pair] = rest ? phred_of(minimum(rest, 1ull << 24), 1ull << 24) : NO_DEFICIT;
        Diagonal* rows = found.rows + item * MAX_DIAGONALS;
        found.counts[item] = joiner.write(first, &Fragment::first, rows, scoring);
        found.counts[item + 1] = joiner.write(second, &Fragment::second, rows + MAX_DIAGONALS, scoring);
    }
}
