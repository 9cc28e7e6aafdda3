// Slots of reads, ordered by length: what is sorted, and what follows from it for the blocks whose words are interleaved.
#include "common/portable.cuh"

const i64 BLOCK = 1024;

// An item is a block of records. keys: their lengths. told: the bits of the lengths that are not those of the first one, 0 for
// all before, and that length.
KERNEL void begin_order(WarpItems items, const i32* lengths OF(size), u64* keys OF(size), u32* records OF(size),
                        u32* told OF(2), i64 size) {
    FOR_EACH(block, items) {
        i64 last = minimum((block + 1) * BLOCK, size);
        u32 own = 0;
        for (i64 record = block * BLOCK + warp_lane(); record < last; record += WARP_WIDTH) {
            keys[record] = (u64)lengths[record];
            records[record] = (u32)record;
            own |= (u32)(lengths[record] ^ lengths[0]);
        }
        if (own) atomic_or(&told[0], own);
        if (block == 0 && warp_lane() == 0) told[1] = (u32)lengths[0];
    }
}

// An item is a slot; order[slot] is its record, keys[slot] its bases. firsts: by length, the first slot that has it. sizes: 0,
// then the words of each block: `planes` of as many a slot as the block's longest read needs, and `pads` more.
KERNEL void lay_slots(Items items, const u64* keys OF(items), const i32* order OF(items), i32* lengths OF(items),
                      i32* slot_of OF(items), i64* firsts OF(any), i64* sizes OF((items - 1 >> tile_bits) + 2),
                      i64 size, i32 tile_bits, i32 planes, i32 pads) {
    i64 lanes = (i64)1 << tile_bits;
    FOR_EACH(slot, items) {
        i32 length = (i32)keys[slot];
        lengths[slot] = length;
        slot_of[order[slot]] = (i32)slot;
        if (slot == 0 || keys[slot] != keys[slot - 1]) firsts[length] = slot;
        if (slot == 0) sizes[0] = 0;
        if (slot + 1 == size || (slot + 1 & (lanes - 1)) == 0)
            sizes[(slot >> tile_bits) + 1] = planes * ((length + 31) / 32 + pads) * lanes;
    }
}
