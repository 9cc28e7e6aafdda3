// A part of the one member of a gzip file, inflated before what lies in front of it is known.
#include "reads/deflate.cuh"

enum PartEnd { PART_IS_WHOLE, PART_IS_THE_LAST, PART_HAS_NO_ROOM, PART_IS_CORRUPT };

// Where a block with codes of its own begins that is not the last one: from `from` to before `to`, -1 where none does. The
// whole block can be inflated, and another one seems to be behind it.
HOST_DEVICE i64 find_block(const u8* data, i64 size, i64 from, i64 to, Symbols<u16>& symbols, Codes& codes) {
    for (i64 bit = from; bit < to; ++bit) {
        Bits bits(data, size, bit);
        if (bits.peek(3) != 4 || bits.peek(8) >> 3 > 29) continue;
        symbols.count = 0;
        if (symbols.take_block(bits, codes) != BLOCK_IS_WHOLE) continue;
        bits.fill();
        if (bits.peek(3) >> 1 != 3) return bit;
    }
    return -1;
}

// An item is the part. Inflated are whole blocks, from the bit `from` on, or from the first block behind it where it
// `searches`, to the first that begins behind the bit `to`. told: where they begin and end, -1 for nowhere, how many symbols
// they have, the lowest byte of the window that they ask for, and why they end.
KERNEL void inflate_part(WarpItems items, const u8* data OF(size), u16* symbols OF(room), i64* told OF(5), i64 size,
                         i64 room, i64 from, i64 to, i32 searches) {
    FOR_EACH(item, items) {
        WARP_ARRAY(Codes, codes, 1);
        Symbols<u16> found = {symbols, 0, room, WINDOW_BYTES};
        i64 first = searches ? find_block(data, size, from, to, found, *codes) : from, place = first, count = 0;
        i32 farthest = found.farthest = WINDOW_BYTES;
        found.count = 0;
        PartEnd reason = PART_IS_WHOLE;
        while (place >= 0 && place < to && reason == PART_IS_WHOLE) {
            Bits bits(data, size, place);
            bool is_last = bits.peek(1);
            BlockEnd block = found.take_block(bits, *codes);
            if (block == BLOCK_HAS_NO_ROOM) reason = PART_HAS_NO_ROOM;
            if (block == BLOCK_IS_CORRUPT) reason = PART_IS_CORRUPT;
            if (block != BLOCK_IS_WHOLE) break;
            place = bits.place(), count = found.count, farthest = found.farthest;
            if (is_last) reason = PART_IS_THE_LAST;
        }
        told[0] = first, told[1] = place, told[2] = count, told[3] = farthest, told[4] = reason;
    }
}

// An item is all symbols. meanings: all bytes, and behind them those of the window in front.
KERNEL void resolve_symbols(Items items, const u16* symbols OF(count), const u8* meanings OF(LITERALS + WINDOW_BYTES),
                            u8* bytes OF(count), i64 count) {
    FOR_EACH(item, items)
        for (i64 i = 0; i < count; ++i) bytes[i] = meanings[symbols[i]];
}
