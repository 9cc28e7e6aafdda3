// Pack patterns, eight letters at a time.
#include "reads/patterns.cuh"

// Pack eight letters, the first in the low byte, into sixteen bits, the first base in the high bits. Bits 1 and 2 of a
// letter determine its code. `strange` gets a bit for each letter other than A, C, G, T and U of either case.
HOST_DEVICE u64 packed_letters(u64 letters, u64& strange) {
    const u64 ones = 0x0101010101010101ull;
    u64 codes = (letters >> 1 ^ letters >> 2) & (3 * ones);
    u64 low = codes & ones, high = codes >> 1 & ones, both = low & high;
    u64 upper = ones * 'A' + (low << 1) + (high << 2) + (high << 1) + both * ('T' - 'A' - 8);  // C - A = 2, G - A = 6
    strange |= ((letters & ~(32 * ones)) ^ upper) & ~both;  // T and U differ in bit 0
    codes = (codes << 2 | codes >> 8) & 0x000F000F000F000Full;
    codes = (codes << 4 | codes >> 16) & 0x000000FF000000FFull;
    return (codes << 8 | codes >> 32) & 0xFFFF;
}

// Return eight letters of a read from `position` on, the first in the low byte, with A after the read's end.
HOST_DEVICE u64 eight_letters(const u8* read, i32 position, i32 length) {
    if (position + 8 <= length) return load_u64(read + position);
    u64 letters = 0;
    for (i32 i = 0; i < 8; ++i) letters |= (u64)(position + i < length ? read[position + i] : 'A') << (8 * i);
    return letters;
}

// Pack patterns into `words`. An item is a slot: record order[slot] of full_lengths[slot] bases. tile_offsets: where
// the words of each tile start; lengths: 0 if a base is ambiguous; replaced: number of ambiguous letters other than N.
KERNEL void pack_patterns(Items items, const u8* bytes OF(any), const i32* order OF(items),
        const i64* sequence_starts OF(items), const i32* full_lengths OF(items),
        const i64* tile_offsets OF((items - 1 >> tile_bits) + 2), u64* words OF(any), i32* lengths OF(items),
        u64* replaced OF(1), i32 tile_bits) {
    i64 lanes = (i64)1 << tile_bits;
    FOR_EACH(slot, items) {
        u64* own = words + tile_offsets[slot >> tile_bits] + (slot & (lanes - 1));
        const u8* read = bytes + sequence_starts[order[slot]];
        i32 length = full_lengths[slot];
        u64 strange = 0;
        for (i32 word = 0; word * 32 < length; ++word) {
            u64 packed = 0;
            for (i32 i = 0; i < 4; ++i)
                packed = packed << 16 | packed_letters(eight_letters(read, word * 32 + 8 * i, length), strange);
            own[word * lanes] = packed;
        }
        lengths[slot] = strange ? 0 : length;
        if (!strange) continue;
        u64 other = 0;
        for (i32 i = 0; i < length; ++i) other += base_code(read[i]) == 4 && (read[i] & 0xDF) != 'N';
        if (other) atomic_add(replaced, other);
    }
}
