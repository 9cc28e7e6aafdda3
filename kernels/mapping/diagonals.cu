// Find diagonals: alignments of a read without gaps around its seeds.
//
// The suffixes that share most with a seed are a range of ranks around its insertion point, whose ends are found by
// bisection. Each suffix names a diagonal, on which the read is aligned without gaps. That is cheap enough to rank
// hundreds of copies of a repeat by the bases that distinguish them, and the best diagonals are kept. The lanes of a
// warp first find the range of one seed each, then share the suffixes of all ranges, whose lengths differ widely.
#include "mapping/diagonals.cuh"
#include "mapping/seeds.cuh"
#include "mapping/windows.cuh"

// The suffixes around a seed that are examined.
struct RankRange {
    i64 first;  // rank
    i32 count;
    i32 unexamined;  // longest prefix that an unexamined suffix shares with the query, 0 if all suffixes were examined
};

// The seeds of one read, on a grid of both orientations.
struct SeedGrid {
    const Reference& reference;
    const Queries& queries;
    const SuffixArray& index;
    const suffix_t* ranks;
    const u16* before;
    const u16* after;
    i64 slot;
    i32 seeds, stride, min_seed_bases, max_suffixes;  // seeds of one orientation
    Span part;                                        // part of the read that seeds are taken from
    HOST_DEVICE i32 orientation(i32 seed) const { return seed >= seeds; }
    HOST_DEVICE i32 position(i32 seed) const { return (seed - orientation(seed) * seeds) * stride; }
    HOST_DEVICE Span part_of(i32 orientation) const {
        i32 length = queries.lengths[slot];
        return orientation ? Span{length - part.end, length - part.start} : part;
    }
    HOST_DEVICE bool uses(i32 seed) const {
        Span own = part_of(orientation(seed));
        return position(seed) >= own.start && position(seed) + min_seed_bases <= own.end;
    }
    HOST_DEVICE void prefetch(i32 seed) const {
        if (seed + 4 < 2 * seeds) PREFETCH(&index.suffixes[ranks[seed + 4]]);
        if (seed + 2 < 2 * seeds)
            PREFETCH(&reference.words[index.suffixes[minimum((i64)ranks[seed + 2], index.suffix_count - 1)] >> 5]);
    }
    // Return the number of bases that the suffix at `rank` shares with the query, 0 if the rank is out of range.
    HOST_DEVICE i32 shared(const QuerySuffix<PackedWords>& query, i64 rank) const {
        bool is_valid = rank >= 0 && rank < index.suffix_count;
        return is_valid ? common_prefix(reference, query, (i64)index.suffixes[rank]) : 0;
    }
    // Count the suffixes that share the shortest seed, up to max_suffixes, from `rank`, which does, in steps of `step`.
    HOST_DEVICE i32 count_sharing(const QuerySuffix<PackedWords>& shortest, i64 rank, i32 step) const {
        i32 low = 1, high = max_suffixes;
        bool is_bounded = false;
        while (low < high) {
            i32 probe = is_bounded ? (low + high) / 2 : minimum(2 * low - 1, high - 1);
            if (shared(shortest, rank + step * probe) == min_seed_bases) low = probe + 1;
            else high = probe, is_bounded = true;
        }
        return low;
    }
    // Return the max_suffixes suffixes that share most with the seed; ties prefer the suffix at the higher rank.
    HOST_DEVICE RankRange nearest_suffixes(i32 seed) const {
        i64 above = (i64)ranks[seed], below = above - 1;
        i32 shared_above = after[seed], shared_below = before[seed];
        QuerySuffix<PackedWords> query = {queries.bases(slot, orientation(seed)), position(seed), min_seed_bases};
        i32 up = shared_above < min_seed_bases ? 0 : count_sharing(query, above, 1);
        i32 down = shared_below < min_seed_bases ? 0 : count_sharing(query, below, -1);
        if (up + down < max_suffixes) return RankRange{above - down, up + down, 0};
        query.length = maximum(shared_above, shared_below);
        i32 low = max_suffixes - down, high = up;  // taken from above the insertion point
        while (low < high) {
            i32 probe = (low + high + 1) / 2;
            bool is_nearer = shared(query, above + probe - 1) >= shared(query, below - (max_suffixes - probe));
            if (is_nearer) low = probe;
            else high = probe - 1;
        }
        down = max_suffixes - low;
        i32 next = maximum(shared(query, above + low), shared(query, below - down));
        return RankRange{above - down, max_suffixes, next < min_seed_bases ? 0 : next};
    }
    // Return true if the previous seed lies in the same exact match and so names the same diagonal.
    HOST_DEVICE bool is_named_by_previous_seed(i32 seed, i64 suffix) const {
        i32 previous = position(seed) - stride;
        if (previous < part_of(orientation(seed)).start || suffix < stride) return false;
        i64 start = suffix - stride;
        PackedWords bases = queries.bases(slot, orientation(seed));
        u64 x = mismatch_mask(bases.at(previous), reference.packed().at(start)) & leading_mask(stride);
        if (queries.flags[slot] & READ_AMBIGUOUS)
            x |= queries.mask(slot, orientation(seed)).at(previous) & leading_mask(stride);
        return !x && reference.reach(start, stride) == stride;
    }
    // Align the read on the diagonal of a suffix; return false if the previous seed names the diagonal, too.
    HOST_DEVICE bool verify(i32 seed, i64 rank, const Scoring& scoring, Diagonal& found) const {
        i64 suffix = (i64)index.suffixes[rank], diagonal = suffix - position(seed);
        if (rank + 4 < index.suffix_count) PREFETCH(&reference.words[index.suffixes[rank + 4] >> 5]);
        if (is_named_by_previous_seed(seed, suffix)) return false;
        i32 start = position(seed);
        found = align_around(
                reference, queries, slot, orientation(seed), diagonal, start, start + min_seed_bases, scoring);
        return true;
    }
};

// Write the best diagonals named by the suffixes near each seed of a read, selected[item], to its row of `found`. Only
// seeds between uncovered_starts and uncovered_ends of the read's slot are used, and max_suffixes suffixes a seed.
KERNEL void MIN_BLOCKS(8) find_diagonals(WarpItems items, Queries queries, Reference reference, SuffixArray index,
        Scoring scoring, Seeds seeds, const i32* selected OF(selected), const i32* uncovered_starts OF(reads),
        const i32* uncovered_ends OF(reads), DiagonalTable found, i32 min_seed_bases, i32 max_suffixes) {
    FOR_EACH(item, items) {
        i64 slot = selected[item], first = seeds.offsets[item];
        i32 count = (i32)((seeds.offsets[item + 1] - first) / 2);
        SeedGrid grid = {reference, queries, index, seeds.ranks + first, seeds.before + first, seeds.after + first,
                slot, count, seeds.stride, min_seed_bases, max_suffixes,
                Span{uncovered_starts[slot], uncovered_ends[slot]}};
        BestDiagonals diagonals;
        i32 max_unexamined = 0;
        for (i32 round = 0; round < 2 * count; round += WARP_WIDTH) {
            i32 seed = round + warp_lane();
            RankRange range = {0, 0, 0};
            if (seed < 2 * count && grid.uses(seed)) grid.prefetch(seed), range = grid.nearest_suffixes(seed);
            max_unexamined = maximum(max_unexamined, range.unexamined);
            i32 end = warp_inclusive_sum(range.count), total = warp_shuffle(end, WARP_WIDTH - 1);
            for (i32 number = warp_lane(); warp_any(number < total); number += WARP_WIDTH) {
                i32 owner = warp_upper_bound(end, number);
                i64 rank = warp_shuffle(range.first - end + range.count, owner) + number;
                Diagonal candidate = {};
                bool is_valid = number < total && grid.verify(round + owner, rank, scoring, candidate);
                diagonals.offer(candidate, is_valid);
            }
        }
        max_unexamined = warp_max(max_unexamined);
        diagonals.write(found.rows + item * MAX_DIAGONALS);
        if (warp_lane() == 0) {
            found.counts[item] = diagonals.count;
            found.unexamined_prefixes[item] = max_unexamined;
        }
    }
}
