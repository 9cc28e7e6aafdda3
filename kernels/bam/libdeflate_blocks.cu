// Bytes -> blocks of gzip (BGZF: SAM specification, section 4.1).
#include "common/libdeflate.cuh"

const i64 STORED_BYTES = 5, TRAILER_BYTES = 8;

HOST_DEVICE u8* put(u8* at, u32 value, i32 bytes) {
    for (i32 i = 0; i < bytes; ++i) at[i] = (u8)(value >> (8 * i));
    return at + bytes;
}

// The bytes as they are, as the one block of deflate.
HOST_DEVICE u8* store(u8* at, const u8* bytes, i64 count) {
    *at++ = 1;
    at = put(put(at, (u32)count, 2), (u32)count ^ 0xFFFF, 2);
    for (i64 i = 0; i < count; ++i) at[i] = bytes[i];
    return at + count;
}

// An item is all blocks, one of each block_bytes of the data; sizes: of each, -1 where the library has no memory. header: of
// every block, behind which its size stands less 1. A block that would not become smaller is stored.
KERNEL void compress_blocks(Items items, const u8* data OF(size), const u8* header OF(header_bytes),
                            u8* blocks OF(room), i64* sizes OF(count), Libdeflate library, i64 size, i64 header_bytes,
                            i64 room, i64 count, i64 block_bytes, i32 level) {
    FOR_EACH(item, items) {
        void* compressor = library.compressor(level);
        u8 *at = blocks, *last = blocks + room;
        for (i64 block = 0; block < count; ++block) {
            if (!compressor) {
                sizes[block] = -1;
                continue;
            }
            const u8* own = data + block * block_bytes;
            i64 bytes = minimum(block_bytes, size - block * block_bytes);
            u8 *start = at, *size_at = at + header_bytes;
            for (i64 i = 0; i < header_bytes; ++i) at[i] = header[i];
            at += header_bytes + 2;
            i64 found = library.compress(compressor, own, bytes, at, last - at);
            at = found && found < bytes + STORED_BYTES ? at + found : store(at, own, bytes);
            at = put(put(at, library.checksum(own, bytes), 4), (u32)bytes, 4);
            sizes[block] = at - start;
            put(size_at, (u32)(at - start - 1), 2);
        }
        if (compressor) library.release(compressor);
    }
}
