// The best diagonals of a read.
//
// The best MAX_DIAGONALS by `is_better` remain in any order of offers, and only one diagonal of several that end
// alike (a read with an insertion and a deletion of the same length has two segments on one diagonal). If not all fit,
// at most half are on ALT contigs, because a gene may have hundreds of ALT versions. On the CPU they are an array; on
// the GPU each lane of the read's warp holds one, and a candidate is compared with all of them at once.
#pragma once
#include "mapping/ungapped.cuh"

const i32 MAX_DIAGONALS = 32;  // the lanes of a warp; enough for MAX_WINDOWS windows and the diagonals that widen them

struct Diagonal {
    i64 diagonal;
    u64 tie;  // tie_break of read and diagonal
    Segment segment;
    i16 orientation;
    i16 alternate;  // on an ALT contig
    HOST_DEVICE bool ends_alike(const Diagonal& other) const {
        return diagonal == other.diagonal && orientation == other.orientation && segment.end == other.segment.end;
    }
};

// Return the Diagonal of a segment of an ungapped alignment.
HOST_DEVICE Diagonal diagonal_of(const Reference& reference, const UngappedAlignment& ungapped, const Segment& segment,
        i32 orientation, u64 read_hash) {
    i16 alternate = reference.is_alternate(ungapped.diagonal + segment.start);
    return Diagonal{ungapped.diagonal, tie_break(read_hash, ungapped.diagonal), segment, (i16)orientation, alternate};
}

// Return a diagonal with its best segment that contains the exact match [start, end) of the oriented read.
HOST_DEVICE Diagonal align_around(const Reference& reference, const Queries& queries, i64 slot, i32 orientation,
        i64 diagonal, i32 start, i32 end, const Scoring& scoring) {
    UngappedAlignment ungapped = place_ungapped(reference, queries, slot, orientation, diagonal, start);
    Segment segment = extend_segment(ungapped, start, end, queries.lengths[slot], scoring);
    return diagonal_of(reference, ungapped, segment, orientation, queries.hashes[slot]);
}

// The diagonals of some reads.
struct DiagonalTable {
    Diagonal* rows OF(selected* MAX_DIAGONALS);  // MAX_DIAGONALS of each read, best first; the first `counts` are valid
    i32* counts OF(selected);
    i32* unexamined_prefixes OF(selected);  // longest prefix shared by an unexamined suffix and a seed; 0 for none
};

// Return true if a ranks before b: higher score, then no ALT contig, then the smaller tie break.
HOST_DEVICE bool is_better(const Diagonal& a, const Diagonal& b) {
    if (a.segment.score != b.segment.score) return a.segment.score > b.segment.score;
    if (a.alternate != b.alternate) return a.alternate < b.alternate;
    if (a.tie != b.tie) return a.tie < b.tie;
    if (a.orientation != b.orientation) return a.orientation < b.orientation;
    if (a.segment.start != b.segment.start) return a.segment.start < b.segment.start;
    return a.segment.end > b.segment.end;
}

#ifdef __CUDACC__
static_assert(MAX_DIAGONALS == WARP_WIDTH, "each lane holds one diagonal");

struct BestDiagonals {
    Diagonal own;  // lane i holds the i-th best
    i32 count;
    HOST_DEVICE BestDiagonals() : count(0) {}
    HOST_DEVICE void insert(const Diagonal& candidate) {
        i32 lane = warp_lane();
        u32 duplicate = __ballot_sync(~0u, lane < count && own.ends_alike(candidate));
        u32 ahead = __ballot_sync(~0u, lane < count && !is_better(candidate, own));
        u32 alternate_lanes = __ballot_sync(~0u, lane < count && own.alternate);
        i32 rank = __popc(ahead), victim = duplicate ? __ffs(duplicate) - 1 : minimum(count, MAX_DIAGONALS - 1);
        if (!duplicate && count == MAX_DIAGONALS && __popc(alternate_lanes) + candidate.alternate > MAX_DIAGONALS / 2) {
            victim = 31 - __clz(alternate_lanes);
            if (rank > victim && !candidate.alternate) return replace_better(candidate, victim, rank);
        }
        if (rank > victim || rank == MAX_DIAGONALS) return;
        if (duplicate && ahead & duplicate) return;
        Diagonal before = warp_shuffle(own, lane ? lane - 1 : 0);
        if (lane > rank && lane <= victim) own = before;
        if (lane == rank) own = candidate;
        if (!duplicate && count < MAX_DIAGONALS) ++count;
    }
    // Replace a better diagonal, which is on an ALT contig.
    HOST_DEVICE void replace_better(const Diagonal& candidate, i32 victim, i32 rank) {
        i32 lane = warp_lane();
        Diagonal next = warp_shuffle(own, minimum(lane + 1, MAX_DIAGONALS - 1));
        if (lane >= victim && lane + 1 < rank) own = next;
        if (lane + 1 == rank) own = candidate;
    }
    HOST_DEVICE void offer(const Diagonal& candidate, bool is_valid) {
        i32 worst = count < MAX_DIAGONALS ? 0 : __shfl_sync(~0u, own.segment.score, MAX_DIAGONALS - 1);
        bool has_room = count_alternates() > MAX_DIAGONALS / 2;  // for a diagonal on no ALT contig; a warp-wide call
        bool taken = is_valid && (candidate.segment.score >= worst || (has_room && !candidate.alternate));
        for (u32 pending = __ballot_sync(~0u, taken); pending; pending &= pending - 1)
            insert(warp_shuffle(candidate, __ffs(pending) - 1));
    }
    HOST_DEVICE i32 count_alternates() const {
        return __popc(__ballot_sync(~0u, warp_lane() < count && own.alternate));
    }
    HOST_DEVICE void write(Diagonal* found) const {
        if (warp_lane() < count) found[warp_lane()] = own;
    }
};
#else
struct BestDiagonals {
    Diagonal best[MAX_DIAGONALS];
    i32 count, alternate_count;
    HOST_DEVICE BestDiagonals() : count(0), alternate_count(0) {}
    // Return the index of the diagonal that the candidate replaces if the array is full.
    HOST_DEVICE i32 victim_of(const Diagonal& candidate) const {
        i32 last = MAX_DIAGONALS - 1;
        if (alternate_count + candidate.alternate > MAX_DIAGONALS / 2)
            while (!best[last].alternate) --last;
        return last;
    }
    HOST_DEVICE bool has_room(const Diagonal& candidate) const {
        return count < MAX_DIAGONALS || is_better(candidate, best[MAX_DIAGONALS - 1]) ||
                (!candidate.alternate && alternate_count > MAX_DIAGONALS / 2);
    }
    HOST_DEVICE void offer(const Diagonal& candidate, bool is_valid) {
        if (!is_valid || !has_room(candidate)) return;
        i32 victim = 0;
        while (victim < count && !best[victim].ends_alike(candidate)) ++victim;
        if (victim < count) {
            if (!is_better(candidate, best[victim])) return;
        } else if (count < MAX_DIAGONALS) {
            ++count, alternate_count += candidate.alternate;
        } else {
            victim = victim_of(candidate);
            if (candidate.alternate && !is_better(candidate, best[victim])) return;
            alternate_count += candidate.alternate - best[victim].alternate;
        }
        for (; victim > 0 && is_better(candidate, best[victim - 1]); --victim) best[victim] = best[victim - 1];
        for (; victim + 1 < count && is_better(best[victim + 1], candidate); ++victim) best[victim] = best[victim + 1];
        best[victim] = candidate;
    }
    HOST_DEVICE void write(Diagonal* found) const {
        for (i32 i = 0; i < count; ++i) found[i] = best[i];
    }
};
#endif
