// Sort reads by length into slots, and compute where the words of each tile of slots start.
#include "common/portable.cuh"

const i64 BLOCK = 1024;
// Write the keys and values to sort: lengths and record indices. An item is BLOCK records. varying: the bits in which
// any length differs from the first length (0 before the launch), and the first length.
KERNEL void init_length_sort(WarpItems items, const i32* lengths OF(size), u64* keys OF(size), u32* records OF(size),
        u32* varying OF(2), i64 size) {
    FOR_EACH(block, items) {
        i64 last = minimum((block + 1) * BLOCK, size);
        u32 bits = 0;
        for (i64 record = block * BLOCK + warp_lane(); record < last; record += WARP_WIDTH) {
            keys[record] = (u64)lengths[record];
            records[record] = (u32)record;
            bits |= (u32)(lengths[record] ^ lengths[0]);
        }
        if (bits) atomic_or(&varying[0], bits);
        if (block == 0 && warp_lane() == 0) varying[1] = (u32)lengths[0];
    }
}

// Fill the arrays of LengthOrder. An item is a slot: record order[slot], of keys[slot] bases. first_slots: by length,
// the first slot of that length. sizes: 0, then the words of each tile of 2^tile_bits slots, which has `planes` planes.
// A slot has the words per plane for the longest read of its tile, and `pads` more.
KERNEL void fill_slots(Items items, const u64* keys OF(items), const i32* order OF(items), i32* lengths OF(items),
        i32* slot_of OF(items), i64* first_slots OF(any), i64* sizes OF((items - 1 >> tile_bits) + 2), i64 size,
        i32 tile_bits, i32 planes, i32 pads) {
    i64 tile_slots = (i64)1 << tile_bits;
    FOR_EACH(slot, items) {
        i32 length = (i32)keys[slot];
        lengths[slot] = length;
        slot_of[order[slot]] = (i32)slot;
        if (slot == 0 || keys[slot] != keys[slot - 1]) first_slots[length] = slot;
        if (slot == 0) sizes[0] = 0;
        if (slot + 1 == size || (slot + 1 & (tile_slots - 1)) == 0)
            sizes[(slot >> tile_bits) + 1] = planes * ((length + 31) / 32 + pads) * tile_slots;
    }
}
