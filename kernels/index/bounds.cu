// Checks of a stored index's arrays: if all of them pass, every kernel stays inside the arrays for any contents. Each
// kernel stores the smallest invalid index in first_invalid[0].
#include "index/suffix_tree.cuh"

const i64 PART = 4096;  // suffixes of an item of check_suffixes
// Lower first_invalid[0] to a suffix not below `length`. An item is PART suffixes, first tested by their maximum.
KERNEL void check_suffixes(WarpItems items, const suffix_t* suffixes OF(suffix_count), u64* first_invalid OF(1),
        i64 suffix_count, i64 length) {
    FOR_EACH(part, items) {
        const suffix_t* own = suffixes + part * PART;
        i64 count = minimum(PART, suffix_count - part * PART);
        suffix_t largest = 0;
        for (i64 i = warp_lane(); i < count; i += WARP_WIDTH) largest = maximum(largest, own[i]);
        if ((u64)largest < (u64)length) continue;
        for (i64 i = warp_lane(); i < count; i += WARP_WIDTH)
            if ((u64)own[i] >= (u64)length) atomic_min(first_invalid, (u64)(part * PART + i));
    }
}

// Lower first_invalid[0] to an invalid entry: entry 0 is 0, entries never decrease, entry `last` is suffix_count.
KERNEL void check_prefix_table(
        Items items, const suffix_t* table OF(items), u64* first_invalid OF(1), i64 last, i64 suffix_count) {
    FOR_EACH(entry, items) {
        bool is_valid = entry ? table[entry - 1] <= table[entry] : table[0] == 0;
        if (entry == last) is_valid &= (u64)table[entry] == (u64)suffix_count;
        if (!is_valid) atomic_min(first_invalid, (u64)entry);
    }
}

// Lower first_invalid[0] to an edge outside the reference or the suffix array, or an empty edge to an inner node.
KERNEL void check_edges(
        Items items, const Edge* edges OF(items), u64* first_invalid OF(1), i64 nodes, i64 suffix_count, i64 length) {
    FOR_EACH(i, items) {
        const Edge edge = edges[i];
        bool is_valid = (i64)edge.start + edge.length <= length && (i64)edge.left <= suffix_count &&
                (edge.destination == LEAF || (edge.length && (i64)edge.destination < nodes));
        if (!is_valid) atomic_min(first_invalid, (u64)i);
    }
}

// Lower first_invalid[0] to a word that does not mark exactly the blocks of 64 positions with a barrier.
KERNEL void check_barrier_blocks(Items items, Reference reference, u64* first_invalid OF(1)) {
    FOR_EACH(word, items) {
        u64 expected = 0;
        i64 position = word * 64 * 64, barrier = reference.next_barrier(position);
        for (i64 block = 0; block < 64; ++block, position += 64) {
            while (reference.barrier_ends[barrier] <= position) ++barrier;
            expected |= (u64)(reference.barrier_starts[barrier] < position + 64) << block;
        }
        if (reference.barrier_blocks[word] != expected) atomic_min(first_invalid, (u64)word);
    }
}
