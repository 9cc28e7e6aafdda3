// Inflate BGZF blocks on the host with libdeflate.
#include "common/libdeflate.cuh"

// Inflate `count` blocks, block i being data[ends[i]:ends[i + 1]], into contiguous contents. One item. total: bytes of
// all contents, or -1 if a block is corrupt or libdeflate is out of memory.
KERNEL void inflate_blocks(Items items, const u8* data OF(size), const i64* ends OF(count + 1),
        u8* contents OF(capacity), i64* total OF(1), Libdeflate library, i64 size, i64 count, i64 capacity) {
    FOR_EACH(item, items) {
        void* decompressor = library.decompressor();
        i64 at = decompressor ? 0 : -1;
        for (i64 block = 0; block < count && at >= 0; ++block) {
            i64 bytes = library.inflate(
                    decompressor, data + ends[block], ends[block + 1] - ends[block], contents + at, capacity - at);
            at = bytes < 0 ? -1 : at + bytes;
        }
        total[0] = at;
        if (decompressor) library.release_decompressor(decompressor);
    }
}
