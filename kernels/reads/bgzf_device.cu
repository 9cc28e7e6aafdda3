// Inflate BGZF blocks, one warp per block. Corrupt blocks are detected and never write outside their contents.
#include "common/crc32.cuh"
#include "reads/deflate.cuh"

const i64 HEADER = 18, TRAILER = 8;

HOST_DEVICE u32 four_bytes(const u8* bytes) {  // little-endian
    u32 value = 0;
    for (i32 i = 3; i >= 0; --i) value = value << 8 | bytes[i];
    return value;
}

// Inflate each block (item), data[ends[item]:ends[item + 1]], into `contents`. contents_ends: where its contents end,
// by the sizes in the trailers. corrupt_count: incremented for each block whose contents have another size or checksum.
KERNEL void inflate_bgzf_blocks(WarpItems items, const u8* data OF(size), const i64* ends OF(items + 1),
        const i64* contents_ends OF(items), u8* contents OF(capacity), u64* corrupt_count OF(1), i64 size,
        i64 capacity) {
    FOR_EACH(item, items) {
        WARP_ARRAY(BlockCodes, codes, 1);
        i64 start = item ? contents_ends[item - 1] : 0, length = contents_ends[item] - start;
        const u8 *block = data + ends[item], *trailer = data + ends[item + 1] - TRAILER;
        bool is_valid = ends[item + 1] - ends[item] > HEADER + TRAILER, is_last = false;
        if (is_valid) {
            BitReader bits(block + HEADER, trailer - block - HEADER, 0);
            InflateOutput<u8> output = {contents + start, 0, length, 0};
            while (is_valid && !is_last) {
                bits.fill();
                is_last = bits.peek(1);
                is_valid = output.inflate_block(bits, *codes) == BLOCK_COMPLETE;
            }
            warp_sync();
            is_valid = is_valid && output.count == length && four_bytes(trailer + 4) == (u32)length &&
                    four_bytes(trailer) == warp_crc32(contents + start, length);
        }
        if (!is_valid && warp_lane() == 0) atomic_add(corrupt_count, 1);
        warp_sync();
    }
}
