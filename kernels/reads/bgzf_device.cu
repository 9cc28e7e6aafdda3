// Blocks of BGZF, which are members of gzip -> their contents, a group each. What is corrupt is noticed, and does no harm.
#include "common/crc32.cuh"
#include "reads/deflate.cuh"

const i64 HEADER = 18, TRAILER = 8;

HOST_DEVICE u32 four_bytes(const u8* bytes) {
    u32 found = 0;
    for (i32 i = 3; i >= 0; --i) found = found << 8 | bytes[i];
    return found;
}

// An item is a block, data from ends[item] to ends[item + 1]. contents_ends: where the contents of each end, by what the
// blocks tell. faults: counts those that are not as they tell.
KERNEL void inflate_members(WarpItems items, const u8* data OF(size), const i64* ends OF(items + 1),
                            const i64* contents_ends OF(items), u8* contents OF(room), u64* faults OF(1), i64 size,
                            i64 room) {
    FOR_EACH(item, items) {
        WARP_ARRAY(Codes, codes, 1);
        i64 start = item ? contents_ends[item - 1] : 0, length = contents_ends[item] - start;
        const u8 *block = data + ends[item], *trailer = data + ends[item + 1] - TRAILER;
        bool is_whole = ends[item + 1] - ends[item] > HEADER + TRAILER, is_last = false;
        if (is_whole) {
            Bits bits(block + HEADER, trailer - block - HEADER, 0);
            Symbols<u8> found = {contents + start, 0, length, 0};
            while (is_whole && !is_last) {
                bits.fill();
                is_last = bits.peek(1);
                is_whole = found.take_block(bits, *codes) == BLOCK_IS_WHOLE;
            }
            warp_sync();
            is_whole = is_whole && found.count == length && four_bytes(trailer + 4) == (u32)length &&
                       four_bytes(trailer) == warp_crc32(contents + start, length);
        }
        if (!is_whole && warp_lane() == 0) atomic_add(faults, 1);
        warp_sync();
    }
}
