// Diagonals: where the reference resembles a read without gaps.
//
// From each seed the nearest suffixes are walked outwards, the longer common prefix first. Each names a diagonal, on
// which the read is verified around the seed. That is so cheap that it ranks hundreds of copies of a repeat by what
// distinguishes them. The best are kept.
#include "search/diagonals.cuh"
#include "search/seeds.cuh"
#include "search/windows.cuh"

// The seeds of one read: places on the grid of both orientations.
struct Grid {
    const Reference& reference;
    const Queries& queries;
    const SuffixArray& index;
    const suffix_t* ranks;
    const u16* before;
    const u16* after;
    i64 slot;
    u64 hash;
    i32 seeds, stride, shortest_seed, neighbours;  // seeds of one orientation
    Span part;                                     // of the read that seeds are taken from

    HOST_DEVICE Span part_of(i32 orientation) const {
        i32 length = queries.lengths[slot];
        return orientation ? Span{length - part.end, length - part.begin} : part;
    }
    HOST_DEVICE bool takes(i32 seed) const {
        i32 orientation = seed >= seeds, position = (seed - orientation * seeds) * stride;
        Span own = part_of(orientation);
        return position >= own.begin && position + shortest_seed <= own.end;
    }

    HOST_DEVICE void prefetch(i32 seed) const {
        if (seed + 4 < 2 * seeds) PREFETCH(&index.suffixes[ranks[seed + 4]]);
        if (seed + 2 < 2 * seeds)
            PREFETCH(&reference.words[index.suffixes[minimum((i64)ranks[seed + 2], index.suffix_count - 1)] >> 5]);
    }
};

// The suffixes around one seed, the longer common prefix first.
struct Neighbours {
    Suffix<Words> query;
    i64 low, high;
    i32 shared_low, shared_high, taken, orientation;
    i32 unexamined;  // bases that the first suffix behind the limit shares

    HOST_DEVICE void start(const Grid& grid, i32 seed) {
        orientation = seed >= grid.seeds;
        query = Suffix{grid.queries.bases(grid.slot, orientation), (seed - orientation * grid.seeds) * grid.stride, 0};
        low = (i64)grid.ranks[seed] - 1, high = low + 1;
        shared_low = grid.before[seed], shared_high = grid.after[seed];
        taken = 0;
        unexamined = 0;
    }
    // Whether the seed before this one stands in the same run of equal bases, and so names the diagonal too.
    HOST_DEVICE bool named_before(const Grid& grid, i64 place) const {
        if (query.position < grid.part_of(orientation).begin + grid.stride || place < grid.stride) return false;
        i64 position = query.position - grid.stride, start = place - grid.stride;
        u64 x = differences(query.bases.at(position), grid.reference.packed().at(start)) & first_bases(grid.stride);
        if (grid.queries.flags[grid.slot] & READ_AMBIGUOUS)
            x |= grid.queries.mask(grid.slot, orientation).at(position) & first_bases(grid.stride);
        return !x && grid.reference.reach(start, grid.stride) == grid.stride;
    }
    // The next diagonal, verified; false where there is none.
    HOST_DEVICE bool next(const Grid& grid, const Scoring& scoring, Diagonal& found) {
        i32 length = grid.queries.lengths[grid.slot];
        while (true) {
            i32 shared = maximum(shared_low, shared_high);
            if (shared < grid.shortest_seed) return false;
            if (taken++ == grid.neighbours) {
                unexamined = shared;
                return false;
            }
            bool up = shared_high >= shared_low;
            i64 place = (i64)grid.index.suffixes[up ? high : low], ahead = up ? high + 4 : low - 4;
            if (ahead >= 0 && ahead < grid.index.suffix_count)
                PREFETCH(&grid.reference.words[grid.index.suffixes[ahead] >> 5]);
            query.length = shared;
            if (up)
                shared_high = ++high < grid.index.suffix_count
                                  ? common_prefix(grid.reference, query, (i64)grid.index.suffixes[high])
                                  : 0;
            else shared_low = --low >= 0 ? common_prefix(grid.reference, query, (i64)grid.index.suffixes[low]) : 0;
            if (named_before(grid, place)) continue;
            i64 diagonal = place - query.position;
            i32 position = (i32)query.position;
            Laid laid = lay(grid.reference, grid.queries, grid.slot, orientation, diagonal, position);
            Segment segment = extend_segment(laid, position, position + shared, length, scoring);
            found = Diagonal{diagonal, tie_of(grid.hash, diagonal), segment, orientation};
            return true;
        }
    }
};

// An item is a read, selected[item], whose seeds between part_begins and part_ends of its slot are taken.
KERNEL void RESIDENT(8) find_diagonals(i64 begin, i64 end, Queries queries, Reference reference, SuffixArray index,
                                       Scoring scoring, Seeds seeds, const i32* selected OF(selected),
                                       const i32* part_begins OF(reads), const i32* part_ends OF(reads),
                                       DiagonalTable found, i32 shortest_seed, i32 neighbours) {
    FOR_EACH_GROUP(item, begin, end) {
        i64 slot = selected[item], first = seeds.offsets[item];
        i32 count = (i32)((seeds.offsets[item + 1] - first) / 2);
        Grid grid = {reference,
                     queries,
                     index,
                     seeds.ranks + first,
                     seeds.before + first,
                     seeds.after + first,
                     slot,
                     queries.hashes[slot],
                     count,
                     seeds.stride,
                     shortest_seed,
                     neighbours,
                     Span{part_begins[slot], part_ends[slot]}};
        Diagonals diagonals;
        i32 most_unexamined = 0;
        for (i32 round = 0; round < 2 * count; round += GROUP_WIDTH) {
            i32 seed = round + group_lane();
            bool more = seed < 2 * count && grid.takes(seed);
            Neighbours walk;
            if (more) grid.prefetch(seed), walk.start(grid, seed);
            while (group_any(more)) {
                Diagonal fresh = {};
                bool real = more && walk.next(grid, scoring, fresh);
                diagonals.offer(fresh, real);
                if (more && !real) most_unexamined = maximum(most_unexamined, walk.unexamined);
                more = real;
            }
        }
        most_unexamined = group_max(most_unexamined);
        diagonals.write(found.rows + item * KEPT);
        if (group_lane() == 0) {
            found.counts[item] = diagonals.count;
            found.unexamined[item] = most_unexamined;
        }
    }
}
