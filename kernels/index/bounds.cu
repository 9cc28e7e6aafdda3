// What must hold of an index's arrays, whatever else they hold, for every kernel to stay inside them. Each kernel leaves the
// smallest element that is not as it must be in wrong[0].
#include "index/suffix_tree.cuh"

// An item is a part of the array, whose largest place tells whether it has to be looked at one by one.
const i64 PART = 4096;

KERNEL void bound_suffixes(WarpItems items, const suffix_t* suffixes OF(suffix_count), u64* wrong OF(1),
                           i64 suffix_count, i64 length) {
    FOR_EACH(part, items) {
        const suffix_t* own = suffixes + part * PART;
        i64 count = minimum(PART, suffix_count - part * PART);
        suffix_t largest = 0;
        for (i64 i = warp_lane(); i < count; i += WARP_WIDTH) largest = maximum(largest, own[i]);
        if ((u64)largest < (u64)length) continue;
        for (i64 i = warp_lane(); i < count; i += WARP_WIDTH)
            if ((u64)own[i] >= (u64)length) atomic_min(wrong, (u64)(part * PART + i));
    }
}

// An item is an entry: the first is 0, none falls, the last counts all suffixes.
KERNEL void bound_prefix_table(Items items, const suffix_t* table OF(items), u64* wrong OF(1), i64 last,
                               i64 suffix_count) {
    FOR_EACH(entry, items) {
        bool right = entry ? table[entry - 1] <= table[entry] : table[0] == 0;
        if (entry == last) right &= (u64)table[entry] == (u64)suffix_count;
        if (!right) atomic_min(wrong, (u64)entry);
    }
}

// An item is an edge, inside the reference and the suffix array. One to an inner node leads there by a base at least, so
// that walks end.
KERNEL void bound_edges(Items items, const Edge* edges OF(items), u64* wrong OF(1), i64 nodes, i64 suffix_count,
                        i64 length) {
    FOR_EACH(i, items) {
        const Edge edge = edges[i];
        bool right = (i64)edge.start + edge.length <= length && (i64)edge.left <= suffix_count &&
                     (edge.destination == LEAF || (edge.length && (i64)edge.destination < nodes));
        if (!right) atomic_min(wrong, (u64)i);
    }
}

// An item is a word of the bitmap: it marks the blocks that hold a barrier, and no other.
KERNEL void bound_barrier_blocks(Items items, Reference reference, u64* wrong OF(1)) {
    FOR_EACH(word, items) {
        u64 expected = 0;
        i64 place = word * 64 * 64, barrier = reference.next_barrier(place);
        for (i64 block = 0; block < 64; ++block, place += 64) {
            while (reference.barrier_ends[barrier] <= place) ++barrier;
            expected |= (u64)(reference.barrier_starts[barrier] < place + 64) << block;
        }
        if (reference.barrier_blocks[word] != expected) atomic_min(wrong, (u64)word);
    }
}
