// Gzip members made by nvCOMP -> BGZF blocks.
#include "common/portable.cuh"

const i64 MEMBER_HEADER = 10, TRAILER = 8, STORED = 5;
// Return the text bytes of block `item` of a text of `size` bytes; each block but the last has block_bytes.
HOST_DEVICE i64 text_bytes(i64 item, i64 size, i64 block_bytes) {
    return minimum(block_bytes, size - item * block_bytes);
}
// Return the bytes of the deflate data of a member with `bytes` bytes of text, or 0 if a stored block is smaller.
HOST_DEVICE i64 compressed_bytes(i64 member_bytes, i64 bytes) {
    i64 compressed = member_bytes - MEMBER_HEADER - TRAILER;
    return compressed < bytes + STORED ? compressed : 0;
}

// Compute the bytes of the BGZF block of each member. size: bytes of the text; header_bytes: before the size field.
KERNEL void measure_blocks(Items items, const i64* member_bytes OF(items), i64* lengths OF(items), i64 size,
        i64 header_bytes, i64 block_bytes) {
    FOR_EACH(item, items) {
        i64 bytes = text_bytes(item, size, block_bytes), compressed = compressed_bytes(member_bytes[item], bytes);
        lengths[item] = header_bytes + 2 + (compressed ? compressed : STORED + bytes) + TRAILER;
    }
}

// Write the BGZF block of each member, one warp a member; member i starts at members + i * stride. data: the text;
// ends: inclusive sums of the block sizes; header: first bytes of each block, before its size field.
KERNEL void write_blocks(WarpItems items, const u8* data OF(size), const u8* header OF(header_bytes),
        const u8* members OF(items* stride), const i64* member_bytes OF(items), const i64* ends OF(items),
        u8* blocks OF(capacity), i64 size, i64 header_bytes, i64 capacity, i64 stride, i64 block_bytes) {
    FOR_EACH(item, items) {
        i64 bytes = text_bytes(item, size, block_bytes), compressed = compressed_bytes(member_bytes[item], bytes);
        i64 start = item ? ends[item - 1] : 0, length = ends[item] - start;
        const u8* member = members + item * stride;
        u8 *block = blocks + start, *contents = block + header_bytes + 2;
        warp_copy(header, header_bytes, block);
        if (compressed) {
            warp_copy(member + MEMBER_HEADER, compressed, contents);
        } else {
            warp_copy(data + item * block_bytes, bytes, contents + STORED);
        }
        warp_copy(member + member_bytes[item] - TRAILER, TRAILER, blocks + ends[item] - TRAILER);
        if (warp_lane() != 0) continue;
        block[header_bytes] = (u8)(length - 1), block[header_bytes + 1] = (u8)((length - 1) >> 8);
        if (compressed) continue;
        contents[0] = 1;
        contents[1] = (u8)bytes, contents[2] = (u8)(bytes >> 8);
        contents[3] = (u8)~bytes, contents[4] = (u8)(~bytes >> 8);
    }
}
