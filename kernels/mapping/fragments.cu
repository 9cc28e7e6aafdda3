// Fragments: two mates of which each has more places than windows, and all fragments that these places make.
//
// Where both mates lie in repeats, few of their many places are a fragment apart, and windows that each mate got by itself
// show hardly any of them. So all places are listed in the order of their positions, both lists are gone through side by
// side, and the places of the best fragments become windows; what the others cost is one rival more.
#include "mapping/matches.cuh"
#include "mapping/mates.cuh"
#include "mapping/diagonal_range.cuh"

const i32 KEPT_FRAGMENTS = 4;    // that get windows; as many are left for mates with gaps, beside their partners
const i32 MAX_FRAGMENTS = 4096;  // of a pair; mates in satellites have one at nearly every place
const i32 END_BITS = 36;         // of a place in a key

// An item is a pair: 1 for both mates where fragments that no windows show may matter beside the cheapest_choice choice. One of
// them alone may cost much: there may be hundreds.
KERNEL void find_doubtful(Items items, Queries queries, Reference reference, InsertSizeTable inserts, Scoring scoring,
                          WindowTable windows, PlacementTable placements, u8* doubtful OF(2 * items)) {
    FOR_EACH(item, items) {
        Pair pair = pair_of(item, queries, reference, inserts, windows, placements);
        i32 least = minimum(pair.first.dropped_deficit, pair.second.dropped_deficit);
        i32 most = maximum(pair.first.dropped_deficit, pair.second.dropped_deficit);
        doubtful[2 * item] = doubtful[2 * item + 1] =
            most < NO_DEFICIT && least + most < cheapest_choice(pair, queries.hashes, scoring).cost.total + NEGLIGIBLE;
    }
}

// An item is a mate, the record mates[item].
KERNEL void list_mates(Items items, Queries queries, const i32* mates OF(items), i32* slots OF(items)) {
    FOR_EACH(item, items) slots[item] = queries.slot_of[mates[item]];
}

// A place of a read by its fragment's end, and what the read loses there in phred. Reads are numbered as they were
// selected, mates one behind the other.
struct Places {
    const u64* keys OF(places);  // read, strand and end, in order; behind them keys of no read
    const u32* losses OF(places);
    i64 place_count;

    // Where the ends of a read on a strand begin that lie at a place or behind it.
    HOST_DEVICE i64 first_from(i64 read, bool reversed, i64 place) const {
        u64 key = ((u64)read << 1 | reversed) << END_BITS | (u64)place;
        i64 low = 0, high = place_count;
        while (low < high) {
            i64 middle = (low + high) >> 1;
            if (keys[middle] < key) low = middle + 1;
            else high = middle;
        }
        return low;
    }
};

// Of a place whose diagonal a match names: what is lost there; -1 where that is more than mates lose which are no fragment.
// Without gaps both: the copies of a repeat need the one that the best place has.
HOST_DEVICE i32 loss_of(const Diagonal& found, i64 slot, const WindowTable& windows, const PlacementTable& placements,
                        const Scoring& scoring) {
    const Window& chosen = windows.of(slot)[placements.chosen[slot]];
    if (found.alternate != chosen.alternate) return -1;
    i32 loss = maximum(points_to_phred(chosen.ungapped - found.segment.score, placements.variant_phreds[slot], scoring), 0);
    return loss < scoring.unpaired_phred ? loss : -1;
}

// An item is a match: 1 where it names a place.
KERNEL void count_places(Items items, Queries queries, Reference reference, SuffixArray index, Scoring scoring,
                         SeedMatches matches, WindowTable windows, PlacementTable placements, i64* counts OF(items)) {
    MatchIterator walk = {reference, queries, index, matches, -1, -1};
    FOR_EACH(item, items) {
        Diagonal found;
        i64 slot;
        counts[item] = walk.find(item, scoring, found, slot) && loss_of(found, slot, windows, placements, scoring) >= 0;
    }
}

// ends: the inclusive prefix sum of what count_places gave.
KERNEL void list_places(Items items, Queries queries, Reference reference, SuffixArray index, Scoring scoring,
                        SeedMatches matches, WindowTable windows, PlacementTable placements, const i64* ends OF(items),
                        u64* keys OF(places), u32* losses OF(places)) {
    MatchIterator walk = {reference, queries, index, matches, -1, -1};
    FOR_EACH(item, items) {
        i64 place = item ? ends[item - 1] : 0, slot;
        if (ends[item] == place) continue;
        Diagonal found;
        walk.find(item, scoring, found, slot);
        i32 length = queries.lengths[slot];
        bool reversed = queries.reversed(slot, found.orientation);
        // A diagonal begins less than a read in front of the reference.
        u64 at = (u64)(found.diagonal + (reversed ? length : 0) + length);
        keys[place] = ((u64)walk.read << 1 | reversed) << END_BITS | at;
        losses[place] = (u32)loss_of(found, slot, windows, placements, scoring);
    }
}

// A mate of a pair whose places are repeat_mate.
struct RepeatMate {
    i64 read, slot;
    i32 length;
    bool flipped;

    HOST_DEVICE i64 diagonal(FragmentEnd at) const { return at.place - (at.reversed ? length : 0); }
};

HOST_DEVICE RepeatMate repeat_mate(const Queries& queries, i64 read, i64 slot) {
    return RepeatMate{read, slot, queries.lengths[slot], (queries.flags[slot] & READ_FLIPPED) != 0};
}

// A place of each mate, and what the choice of both costs.
struct Fragment {
    i32 cost;
    u64 tie;
    FragmentEnd first, second;

    HOST_DEVICE bool before(const Fragment& other) const {
        return cost != other.cost ? cost < other.cost : tie < other.tie;
    }
};

// The best fragments of a pair, whatever the order in which they come, and what all of them cost.
struct BestFragments {
    Fragment kept[KEPT_FRAGMENTS];
    i32 count, total;
    u64 likelihoods;  // of all

    HOST_DEVICE void keep(const Fragment& fresh) {
        i32 rank = count;
        while (rank > 0 && fresh.before(kept[rank - 1])) --rank;
        if (rank == KEPT_FRAGMENTS) return;
        count = minimum(count + 1, KEPT_FRAGMENTS);
        for (i32 i = count - 1; i > rank; --i) kept[i] = kept[i - 1];
        kept[rank] = fresh;
    }
    HOST_DEVICE void add(const Fragment& fresh) {
        ++total;
        if (fresh.cost < NEGLIGIBLE) likelihoods += likelihood(fresh.cost);
        keep(fresh);
    }
    // Each lane gets what all lanes of the group have found.
    HOST_DEVICE void gather() {
        for (i32 step = 1; step < WARP_WIDTH; step *= 2) {
            BestFragments other = warp_shuffle(*this, warp_lane() ^ step);
            total += other.total;
            likelihoods += other.likelihoods;
            for (i32 i = 0; i < other.count; ++i) keep(other.kept[i]);
        }
    }
};

// The fragments of a pair; the lanes of a group share the places of its first mate.
struct Fragments {
    const Reference& reference;
    const InsertSizeTable& inserts;
    const Queries& queries;
    const Places& places;
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
    // All whose first mate lies on a strand, in one direction; ends lie as far apart as the library has it.
    HOST_DEVICE void join(i32 direction, bool reversed) {
        i64 low = inserts.lows[direction], high = inserts.highs[direction];
        if (low > high) return;
        bool other = reversed != (direction == FR || direction == RF);
        if (InsertSizeTable::sign(direction, FragmentEnd{0, reversed}, true) < 0) low = -low, high = -high;
        const u64 mask = ((u64)1 << END_BITS) - 1;
        i64 i = places.first_from(first.read, reversed, 0), last = places.first_from(first.read, reversed, mask);
        i64 end = places.first_from(second.read, other, mask);
        for (i += warp_lane(); i < last && best.total <= MAX_FRAGMENTS; i += WARP_WIDTH) {
            FragmentEnd one = {(i64)(places.keys[i] & mask) - first.length, reversed};
            i64 begin = one.place + minimum(low, high) + second.length;
            i64 stop = one.place + maximum(low, high) + second.length;
            i64 from = places.first_from(second.read, other, maximum(begin, (i64)0));
            for (i64 j = from; j < end && (i64)(places.keys[j] & mask) <= stop && best.total <= MAX_FRAGMENTS; ++j)
                add(one, FragmentEnd{(i64)(places.keys[j] & mask) - second.length, other}, (i32)places.losses[i],
                    (i32)places.losses[j]);
        }
    }
    // The places of one mate in the best ones, as diagonals; returns how many.
    HOST_DEVICE i32 write(const RepeatMate& mate, FragmentEnd Fragment::* end, Diagonal* rows,
                          const Scoring& scoring) const {
        i32 written = 0;
        for (i32 i = 0; i < best.count; ++i) {
            FragmentEnd at = best.kept[i].*end;
            i64 home = contig(mate, at);
            DiagonalRange stretch = {reference,
                                     queries,
                                     mate.slot,
                                     reference.contig_starts[home],
                                     reference.contig_starts[home + 1] - 1,
                                     at.reversed != mate.flipped,
                                     mate.length};
            Diagonal found;
            if (!stretch.verify(mate.diagonal(at), found, scoring)) continue;
            i32 same = 0;
            while (same < written && !rows[same].same(found)) ++same;
            if (same == written) rows[written++] = found;
        }
        return written;
    }
};

// An item is a mate, the record mates[item], of which the places are those of read `item`. With the first mate of a pair both
// get the diagonals of its best fragments, and rests[pair] what the others cost together; it stays as it is where there are
// none, or too many.
KERNEL void join_places(WarpItems items, Queries queries, Reference reference, InsertSizeTable inserts, Scoring scoring,
                        Places places, const i32* mates OF(items), DiagonalTable found, i32* rests OF(reads / 2)) {
    FOR_EACH(item, items) {
        if (item & 1) continue;
        i64 pair = mates[item] >> 1, slots[2] = {queries.slot_of[2 * pair], queries.slot_of[2 * pair + 1]};
        RepeatMate first = repeat_mate(queries, item, slots[0]), second = repeat_mate(queries, item + 1, slots[1]);
        Fragments fragments = {reference, inserts, queries, places, first, second, {}};
        BestFragments& best = fragments.best;
        for (i32 direction = 0; direction < DIRECTIONS; ++direction)
            for (i32 strand = 0; strand < 2; ++strand) fragments.join(direction, strand);
        best.gather();
        if (warp_lane() != 0) continue;
        found.counts[item] = found.counts[item + 1] = 0;
        if (best.total == 0 || best.total > MAX_FRAGMENTS) continue;
        u64 rest = best.likelihoods;
        for (i32 i = 0; i < best.count; ++i)
            if (best.kept[i].cost < NEGLIGIBLE) rest -= likelihood(best.kept[i].cost);
        rests[pair] = rest ? phred_of(minimum(rest, 1ull << 24), 1ull << 24) : NO_DEFICIT;
        Diagonal* rows = found.rows + item * MAX_DIAGONALS;
        found.counts[item] = fragments.write(first, &Fragment::first, rows, scoring);
        found.counts[item + 1] = fragments.write(second, &Fragment::second, rows + MAX_DIAGONALS, scoring);
    }
}
