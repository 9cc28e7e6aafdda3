// Blocks of gzip -> their contents.
#include "common/libdeflate.cuh"

// An item is all blocks, block i from ends[i] to ends[i + 1] of the data; the contents stand behind each other. made: their
// bytes, -1 where a block is corrupt or the library has no memory.
KERNEL void inflate_blocks(Items items, const u8* data OF(size), const i64* ends OF(count + 1), u8* contents OF(room),
                           i64* made OF(1), Libdeflate library, i64 size, i64 count, i64 room) {
    FOR_EACH(item, items) {
        void* decompressor = library.decompressor();
        i64 at = decompressor ? 0 : -1;
        for (i64 block = 0; block < count && at >= 0; ++block) {
            i64 bytes = library.inflate(decompressor, data + ends[block], ends[block + 1] - ends[block], contents + at,
                                        room - at);
            at = bytes < 0 ? -1 : at + bytes;
        }
        made[0] = at;
        if (decompressor) library.release_decompressor(decompressor);
    }
}
