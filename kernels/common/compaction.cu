// Stream compaction: count the flags that have a bit of a mask, or select their indices in order.
#include "common/portable.cuh"

const i64 BLOCK = 1024;  // flags of an item
// Return in all lanes of the warp the number of a block's flags that have a bit of the mask. size: number of all flags.
HOST_DEVICE i32 count_in_block(i64 block, const u8* flags, i64 size, i32 mask) {
    i64 last = minimum((block + 1) * BLOCK, size);
    i32 count = 0;
    for (i64 first = block * BLOCK; first < last; first += WARP_WIDTH) {
        i64 i = first + warp_lane();
        count += popcount(warp_ballot(i < last && (flags[i] & mask)));
    }
    return count;
}

// counts[block] = the number of flags in a block of BLOCK flags (an item) that have a bit of the mask.
KERNEL void count_flagged(WarpItems items, const u8* flags OF(size), i64* counts OF(items), i64 size, i32 mask) {
    FOR_EACH(block, items) {
        i32 count = count_in_block(block, flags, size, mask);
        if (warp_lane() == 0) counts[block] = count;
    }
}

// Add the number of flags that have a bit of the mask to the total. An item is a block of BLOCK flags.
KERNEL void add_flagged_count(WarpItems items, const u8* flags OF(size), u64* total OF(1), i64 size, i32 mask) {
    FOR_EACH(block, items) {
        i32 count = count_in_block(block, flags, size, mask);
        if (warp_lane() == 0) atomic_add(total, (u64)count);
    }
}

// Write first_index plus the index of each flag that has a bit of the mask, in order, up to the capacity. ends:
// inclusive prefix sums of count_flagged.
KERNEL void select_flagged(WarpItems items, const u8* flags OF(size), const i64* ends OF(items),
        i32* selected OF(capacity), i64 size, i64 capacity, i32 mask, i32 first_index) {
    FOR_EACH(block, items) {
        i64 last = minimum((block + 1) * BLOCK, size), next = block ? ends[block - 1] : 0;
        for (i64 first = block * BLOCK; first < last; first += WARP_WIDTH) {
            i64 i = first + warp_lane();
            bool is_selected = i < last && (flags[i] & mask);
            u32 all = warp_ballot(is_selected);
            i64 target = next + popcount(all & lower_lanes_mask());
            if (is_selected && target < capacity) selected[target] = first_index + (i32)i;
            next += popcount(all);
        }
    }
}
