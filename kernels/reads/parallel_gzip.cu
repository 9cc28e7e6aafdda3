// Inflate a part of a gzip member before the text preceding the part is known.
#include "reads/deflate.cuh"

enum PartStatus { PART_COMPLETE, PART_ENDS_MEMBER, PART_OUT_OF_SPACE, PART_CORRUPT };

// Return the first bit in [from, to) at which a non-final block with dynamic codes starts, or -1. The whole block must
// inflate, and the header after it must be valid. output, codes: scratch.
HOST_DEVICE i64 find_block(const u8* data, i64 size, i64 from, i64 to, InflateOutput<u16>& output, BlockCodes& codes) {
    for (i64 bit = from; bit < to; ++bit) {
        BitReader bits(data, size, bit);
        if (bits.peek(3) != 4 || bits.peek(8) >> 3 > 29) continue;
        output.count = 0;
        if (output.inflate_block(bits, codes) != BLOCK_COMPLETE) continue;
        bits.fill();
        if (bits.peek(3) >> 1 != 3) return bit;
    }
    return -1;
}

// Inflate whole blocks up to the first block that starts at or after bit `to`. Start at bit `from`, or if `searches` is
// set at the first block found after it. One item. result: start bit and end bit (-1 if no block was found),
// symbol count, smallest window index referred to, PartStatus.
KERNEL void inflate_part(WarpItems items, const u8* data OF(size), u16* symbols OF(capacity), i64* result OF(5),
        i64 size, i64 capacity, i64 from, i64 to, i32 searches) {
    FOR_EACH(item, items) {
        WARP_ARRAY(BlockCodes, codes, 1);
        InflateOutput<u16> output = {symbols, 0, capacity, WINDOW_BYTES};
        i64 start = searches ? find_block(data, size, from, to, output, *codes) : from, position = start, count = 0;
        i32 min_window_index = output.min_window_index = WINDOW_BYTES;
        output.count = 0;
        PartStatus status = PART_COMPLETE;
        while (position >= 0 && position < to && status == PART_COMPLETE) {
            BitReader bits(data, size, position);
            bool is_last = bits.peek(1);
            BlockStatus block = output.inflate_block(bits, *codes);
            if (block == BLOCK_OUT_OF_SPACE) status = PART_OUT_OF_SPACE;
            if (block == BLOCK_CORRUPT) status = PART_CORRUPT;
            if (block != BLOCK_COMPLETE) break;
            position = bits.position(), count = output.count, min_window_index = output.min_window_index;
            if (is_last) status = PART_ENDS_MEMBER;
        }
        result[0] = start, result[1] = position, result[2] = count, result[3] = min_window_index, result[4] = status;
    }
}

// Replace symbols of inflate_part by bytes; values: all byte values, then the window before the part. One item.
KERNEL void resolve_symbols(Items items, const u16* symbols OF(count), const u8* values OF(LITERALS + WINDOW_BYTES),
        u8* bytes OF(count), i64 count) {
    FOR_EACH(item, items)
        for (i64 i = 0; i < count; ++i) bytes[i] = values[symbols[i]];
}
