// BestDiagonals: where the reference resembles a read without gaps.
//
// Around each seed lie the suffixes that share most with it: a run of ranks, of which the first and the last are found by
// bisection. Each suffix names a diagonal, on which the read is verified around the seed. That is so cheap that it ranks
// hundreds of copies of a repeat by what distinguishes them. The best are kept. The lanes of a group take a seed each to
// find the runs, and then a suffix each of all runs together, as these are of very different lengths.
#include "mapping/diagonals.cuh"
#include "mapping/seeds.cuh"
#include "mapping/windows.cuh"

// The suffixes around a seed that are looked at.
struct RankRange {
    i64 first;  // its rank
    i32 count;
    i32 unexamined;  // bases that the first suffix shares which is not looked at, 0 where all are
};

// The seeds of one read: places on the grid of both orientations.
struct SeedGrid {
    const Reference& reference;
    const Queries& queries;
    const SuffixArray& index;
    const suffix_t* ranks;
    const u16* before;
    const u16* after;
    i64 slot;
    u64 hash;
    i32 seeds, stride, min_seed_bases, max_suffixes;  // seeds of one orientation
    Span part;                                        // of the read that seeds are taken from

    HOST_DEVICE i32 orientation(i32 seed) const { return seed >= seeds; }
    HOST_DEVICE i32 position(i32 seed) const { return (seed - orientation(seed) * seeds) * stride; }
    HOST_DEVICE Span part_of(i32 orientation) const {
        i32 length = queries.lengths[slot];
        return orientation ? Span{length - part.end, length - part.begin} : part;
    }
    HOST_DEVICE bool takes(i32 seed) const {
        Span own = part_of(orientation(seed));
        return position(seed) >= own.begin && position(seed) + min_seed_bases <= own.end;
    }
    HOST_DEVICE void prefetch(i32 seed) const {
        if (seed + 4 < 2 * seeds) PREFETCH(&index.suffixes[ranks[seed + 4]]);
        if (seed + 2 < 2 * seeds)
            PREFETCH(&reference.words[index.suffixes[minimum((i64)ranks[seed + 2], index.suffix_count - 1)] >> 5]);
    }
    // Bases that the suffix of a rank shares with the query, 0 where there is none.
    HOST_DEVICE i32 shared(const QuerySuffix<PackedWords>& query, i64 rank) const {
        bool real = rank >= 0 && rank < index.suffix_count;
        return real ? common_prefix(reference, query, (i64)index.suffixes[rank]) : 0;
    }
    // How many suffixes from a rank on, up or down by `step`, share the shortest seed: the first one does. No more than
    // `max_suffixes` are counted.
    HOST_DEVICE i32 reach(const QuerySuffix<PackedWords>& shortest, i64 rank, i32 step) const {
        i32 least = 1, most = max_suffixes;
        bool is_bounded = false;
        while (least < most) {
            i32 probe = is_bounded ? (least + most) / 2 : minimum(2 * least - 1, most - 1);
            if (shared(shortest, rank + step * probe) == min_seed_bases) least = probe + 1;
            else most = probe, is_bounded = true;
        }
        return least;
    }
    // The `max_suffixes` suffixes around a seed that share most with it; of two that share as much, that above it. What one
    // shares falls with its distance on both sides.
    HOST_DEVICE RankRange run(i32 seed) const {
        i64 above = (i64)ranks[seed], below = above - 1;
        i32 shared_above = after[seed], shared_below = before[seed];
        QuerySuffix<PackedWords> query = {queries.bases(slot, orientation(seed)), position(seed), min_seed_bases};
        i32 up = shared_above < min_seed_bases ? 0 : reach(query, above, 1);
        i32 down = shared_below < min_seed_bases ? 0 : reach(query, below, -1);
        if (up + down < max_suffixes) return RankRange{above - down, up + down, 0};
        query.length = maximum(shared_above, shared_below);
        i32 least = max_suffixes - down, most = up;  // of those above it
        while (least < most) {
            i32 probe = (least + most + 1) / 2;
            bool is_nearer = shared(query, above + probe - 1) >= shared(query, below - (max_suffixes - probe));
            if (is_nearer) least = probe;
            else most = probe - 1;
        }
        down = max_suffixes - least;
        i32 next = maximum(shared(query, above + least), shared(query, below - down));
        return RankRange{above - down, max_suffixes, next < min_seed_bases ? 0 : next};
    }
    // Whether the seed before this one stands in the same run of equal bases, and so names the diagonal too.
    HOST_DEVICE bool named_before(i32 seed, i64 place) const {
        i32 begin = position(seed) - stride;
        if (begin < part_of(orientation(seed)).begin || place < stride) return false;
        i64 start = place - stride;
        PackedWords bases = queries.bases(slot, orientation(seed));
        u64 x = mismatch_mask(bases.at(begin), reference.packed().at(start)) & leading_mask(stride);
        if (queries.flags[slot] & READ_AMBIGUOUS)
            x |= queries.mask(slot, orientation(seed)).at(begin) & leading_mask(stride);
        return !x && reference.reach(start, stride) == stride;
    }
    // The diagonal that a suffix of a seed's run names, verified; false where the seed before this one names it.
    HOST_DEVICE bool verify(i32 seed, i64 rank, const Scoring& scoring, Diagonal& found) const {
        i64 place = (i64)index.suffixes[rank], diagonal = place - position(seed);
        if (rank + 4 < index.suffix_count) PREFETCH(&reference.words[index.suffixes[rank + 4] >> 5]);
        if (named_before(seed, place)) return false;
        i32 begin = position(seed);
        UngappedAlignment laid = place_ungapped(reference, queries, slot, orientation(seed), diagonal, begin);
        Segment segment = extend_segment(laid, begin, begin + min_seed_bases, queries.lengths[slot], scoring);
        found = diagonal_of(reference, laid, segment, orientation(seed), hash);
        return true;
    }
};

// An item is a read, selected[item], whose seeds between uncovered_starts and uncovered_ends of its slot are taken.
KERNEL void MIN_BLOCKS(8)
    find_diagonals(WarpItems items, Queries queries, Reference reference, SuffixArray index, Scoring scoring,
                   Seeds seeds, const i32* selected OF(selected), const i32* uncovered_starts OF(reads),
                   const i32* uncovered_ends OF(reads), DiagonalTable found, i32 min_seed_bases, i32 max_suffixes) {
    FOR_EACH(item, items) {
        i64 slot = selected[item], first = seeds.offsets[item];
        i32 count = (i32)((seeds.offsets[item + 1] - first) / 2);
        SeedGrid grid = {reference,
                         queries,
                         index,
                         seeds.ranks + first,
                         seeds.before + first,
                         seeds.after + first,
                         slot,
                         queries.hashes[slot],
                         count,
                         seeds.stride,
                         min_seed_bases,
                         max_suffixes,
                         Span{uncovered_starts[slot], uncovered_ends[slot]}};
        BestDiagonals diagonals;
        i32 most_unexamined = 0;
        for (i32 round = 0; round < 2 * count; round += WARP_WIDTH) {
            i32 seed = round + warp_lane();
            RankRange run = {0, 0, 0};
            if (seed < 2 * count && grid.takes(seed)) grid.prefetch(seed), run = grid.run(seed);
            most_unexamined = maximum(most_unexamined, run.unexamined);
            i32 end = warp_inclusive_sum(run.count), total = warp_shuffle(end, WARP_WIDTH - 1);
            for (i32 number = warp_lane(); warp_any(number < total); number += WARP_WIDTH) {
                i32 owner = warp_upper_bound(end, number);
                i64 rank = warp_shuffle(run.first - end + run.count, owner) + number;
                Diagonal fresh = {};
                bool real = number < total && grid.verify(round + owner, rank, scoring, fresh);
                diagonals.offer(fresh, real);
            }
        }
        most_unexamined = warp_max(most_unexamined);
        diagonals.write(found.rows + item * MAX_DIAGONALS);
        if (warp_lane() == 0) {
            found.counts[item] = diagonals.count;
            found.unexamined_prefixes[item] = most_unexamined;
        }
    }
}
