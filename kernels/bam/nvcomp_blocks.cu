// Members of gzip, as a device's library makes them -> blocks of BGZF.
#include "common/portable.cuh"

const i64 MEMBER_HEADER = 10, TRAILER = 8, STORED = 5;

// The bytes of one piece of all, each but the last of block_bytes.
HOST_DEVICE i64 bytes_of(i64 item, i64 size, i64 block_bytes) {
    return minimum(block_bytes, size - item * block_bytes);
}

// What a block holds of its member: its compressed bytes, or 0 where the block is shorter with the bytes as they are.
HOST_DEVICE i64 compressed_bytes(i64 member_bytes, i64 bytes) {
    i64 compressed = member_bytes - MEMBER_HEADER - TRAILER;
    return compressed < bytes + STORED ? compressed : 0;
}

// An item is a member: the bytes of its block.
KERNEL void measure_blocks(Items items, const i64* member_bytes OF(items), i64* lengths OF(items), i64 size,
                           i64 header_bytes, i64 block_bytes) {
    FOR_EACH(item, items) {
        i64 bytes = bytes_of(item, size, block_bytes), compressed = compressed_bytes(member_bytes[item], bytes);
        lengths[item] = header_bytes + 2 + (compressed ? compressed : STORED + bytes) + TRAILER;
    }
}

// An item is a member, of which a group writes the block; member i begins at i * stride. ends: where the blocks end.
// header: of every block, behind which its size stands less 1.
KERNEL void write_blocks(WarpItems items, const u8* data OF(size), const u8* header OF(header_bytes),
                         const u8* members OF(items* stride), const i64* member_bytes OF(items),
                         const i64* ends OF(items), u8* blocks OF(room), i64 size, i64 header_bytes, i64 room,
                         i64 stride, i64 block_bytes) {
    FOR_EACH(item, items) {
        i64 bytes = bytes_of(item, size, block_bytes), compressed = compressed_bytes(member_bytes[item], bytes);
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
