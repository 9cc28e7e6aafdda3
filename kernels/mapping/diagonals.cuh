// The best diagonals of a read. Whatever the order in which they are offered, the same MAX_DIAGONALS remain: the first by `better`,
// of those with the same end the best. Where not all fit, no more than half of them are of ALT contigs, as long as others
// are left: a gene may have hundreds of those. (A read with an insertion and a deletion of the same length leaves its
// diagonal and comes back: two segments of one diagonal.) On the CPU they are an array; on the GPU each lane of the warp
// that works for the read holds one of them, and an offer is compared with all at once.
#pragma once
#include "mapping/ungapped.cuh"

const i32 MAX_DIAGONALS = 32;  // the lanes of a warp; windows, and the max_suffixes that widen them

struct Diagonal {
    i64 diagonal;
    u64 tie;  // tie_break read and diagonal
    Segment segment;
    i16 orientation;
    i16 alternate;  // whether it is on an ALT contig

    HOST_DEVICE bool same(const Diagonal& other) const {
        return diagonal == other.diagonal && orientation == other.orientation && segment.end == other.segment.end;
    }
};

HOST_DEVICE Diagonal diagonal_of(const Reference& reference, const UngappedAlignment& laid, const Segment& segment,
                                 i32 orientation, u64 read_hash) {
    i16 alternate = reference.is_alternate(laid.diagonal + segment.begin);
    return Diagonal{laid.diagonal, tie_break(read_hash, laid.diagonal), segment, (i16)orientation, alternate};
}

// The diagonals of some reads.
struct DiagonalTable {
    Diagonal* rows OF(selected* MAX_DIAGONALS);  // MAX_DIAGONALS of each read
    i32* counts OF(selected);                    // of a read's rows the first ones are diagonals, the best first
    i32* unexamined_prefixes OF(selected);  // the most bases shared at a seed by a place that was not looked at; 0: none
};

HOST_DEVICE bool better(const Diagonal& a, const Diagonal& b) {
    if (a.segment.score != b.segment.score) return a.segment.score > b.segment.score;
    if (a.alternate != b.alternate) return a.alternate < b.alternate;
    if (a.tie != b.tie) return a.tie < b.tie;
    if (a.orientation != b.orientation) return a.orientation < b.orientation;
    if (a.segment.begin != b.segment.begin) return a.segment.begin < b.segment.begin;
    return a.segment.end > b.segment.end;
}

#ifdef __CUDACC__

static_assert(MAX_DIAGONALS == WARP_WIDTH, "each lane holds one diagonal");

struct BestDiagonals {
    Diagonal mine;  // of lane i the i-th best
    i32 count;

    HOST_DEVICE BestDiagonals() : count(0) {}

    HOST_DEVICE void insert(const Diagonal& fresh) {
        i32 lane = warp_lane();
        u32 duplicate = __ballot_sync(~0u, lane < count && mine.same(fresh));
        u32 ahead = __ballot_sync(~0u, lane < count && !better(fresh, mine));
        u32 on_alternates = __ballot_sync(~0u, lane < count && mine.alternate);
        i32 place = __popc(ahead), freed = duplicate ? __ffs(duplicate) - 1 : minimum(count, MAX_DIAGONALS - 1);
        if (!duplicate && count == MAX_DIAGONALS && __popc(on_alternates) + fresh.alternate > MAX_DIAGONALS / 2) {
            freed = 31 - __clz(on_alternates);
            if (place > freed && !fresh.alternate) return push_out(fresh, freed, place);
        }
        if (place > freed || place == MAX_DIAGONALS) return;
        if (duplicate && ahead & duplicate) return;
        Diagonal before = warp_shuffle(mine, lane ? lane - 1 : 0);
        if (lane > place && lane <= freed) mine = before;
        if (lane == place) mine = fresh;
        if (!duplicate && count < MAX_DIAGONALS) ++count;
    }
    // In the place of a better one, which is on an ALT contig.
    HOST_DEVICE void push_out(const Diagonal& fresh, i32 freed, i32 place) {
        i32 lane = warp_lane();
        Diagonal behind = warp_shuffle(mine, minimum(lane + 1, MAX_DIAGONALS - 1));
        if (lane >= freed && lane + 1 < place) mine = behind;
        if (lane + 1 == place) mine = fresh;
    }
    HOST_DEVICE void offer(const Diagonal& fresh, bool real) {
        i32 worst = count < MAX_DIAGONALS ? 0 : __shfl_sync(~0u, mine.segment.score, MAX_DIAGONALS - 1);
        bool has_room = alternates() > MAX_DIAGONALS / 2;  // for one on no ALT contig; asked by all lanes together
        bool taken = real && (fresh.segment.score >= worst || (has_room && !fresh.alternate));
        for (u32 pending = __ballot_sync(~0u, taken); pending; pending &= pending - 1)
            insert(warp_shuffle(fresh, __ffs(pending) - 1));
    }
    HOST_DEVICE i32 alternates() const { return __popc(__ballot_sync(~0u, warp_lane() < count && mine.alternate)); }
    HOST_DEVICE void write(Diagonal* found) const {
        if (warp_lane() < count) found[warp_lane()] = mine;
    }
};

#else

struct BestDiagonals {
    Diagonal kept[MAX_DIAGONALS];
    i32 count, on_alternates;

    HOST_DEVICE BestDiagonals() : count(0), on_alternates(0) {}

    // The one that goes for a fresh one where all fit but one.
    HOST_DEVICE i32 least_wanted(const Diagonal& fresh) const {
        i32 last = MAX_DIAGONALS - 1;
        if (on_alternates + fresh.alternate > MAX_DIAGONALS / 2)
            while (!kept[last].alternate) --last;
        return last;
    }
    HOST_DEVICE bool has_room(const Diagonal& fresh) const {
        return count < MAX_DIAGONALS || better(fresh, kept[MAX_DIAGONALS - 1]) ||
               (!fresh.alternate && on_alternates > MAX_DIAGONALS / 2);
    }
    HOST_DEVICE void offer(const Diagonal& fresh, bool real) {
        if (!real || !has_room(fresh)) return;
        i32 freed = 0;
        while (freed < count && !kept[freed].same(fresh)) ++freed;
        if (freed < count) {
            if (!better(fresh, kept[freed])) return;
        } else if (count < MAX_DIAGONALS) {
            ++count, on_alternates += fresh.alternate;
        } else {
            freed = least_wanted(fresh);
            if (fresh.alternate && !better(fresh, kept[freed])) return;
            on_alternates += fresh.alternate - kept[freed].alternate;
        }
        for (; freed > 0 && better(fresh, kept[freed - 1]); --freed) kept[freed] = kept[freed - 1];
        for (; freed + 1 < count && better(kept[freed + 1], fresh); ++freed) kept[freed] = kept[freed + 1];
        kept[freed] = fresh;
    }
    HOST_DEVICE void write(Diagonal* found) const {
        for (i32 i = 0; i < count; ++i) found[i] = kept[i];
    }
};

#endif
