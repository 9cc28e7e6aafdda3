// The marked ones of some bytes, in order: their number in every block, a prefix sum, and a list; or how many there are.
#include "common/portable.cuh"

const i64 BLOCK = 1024;

// How many of a block are marked: those that have a bit of the mask.
HOST_DEVICE i32 marked_in(i64 block, const u8* marks, i64 size, i32 mask) {
    i64 last = minimum((block + 1) * BLOCK, size);
    i32 count = 0;
    for (i64 first = block * BLOCK; first < last; first += WARP_WIDTH) {
        i64 i = first + warp_lane();
        count += popcount(warp_ballot(i < last && (marks[i] & mask)));
    }
    return count;
}

// An item is a block of bytes.
KERNEL void count_flagged(WarpItems items, const u8* marks OF(size), i64* counts OF(items), i64 size, i32 mask) {
    FOR_EACH(block, items) {
        i32 count = marked_in(block, marks, size, mask);
        if (warp_lane() == 0) counts[block] = count;
    }
}

// The same, added up.
KERNEL void add_flagged_count(WarpItems items, const u8* marks OF(size), u64* total OF(1), i64 size, i32 mask) {
    FOR_EACH(block, items) {
        i32 count = marked_in(block, marks, size, mask);
        if (warp_lane() == 0) atomic_add(total, (u64)count);
    }
}

// ends: the inclusive prefix sum of counts. The first byte has the number `number`. More than `most` are not listed.
KERNEL void select_flagged(WarpItems items, const u8* marks OF(size), const i64* ends OF(items), i32* marked OF(most),
                        i64 size, i64 most, i32 mask, i32 number) {
    FOR_EACH(block, items) {
        i64 last = minimum((block + 1) * BLOCK, size), next = block ? ends[block - 1] : 0;
        for (i64 first = block * BLOCK; first < last; first += WARP_WIDTH) {
            i64 i = first + warp_lane();
            bool is_marked = i < last && (marks[i] & mask);
            u32 all = warp_ballot(is_marked);
            i64 place = next + popcount(all & lower_lanes_mask());
            if (is_marked && place < most) marked[place] = number + (i32)i;
            next += popcount(all);
        }
    }
}
