// Text -> BGZF blocks (SAM specification, section 4.1), compressed by libdeflate.
#include "common/libdeflate.cuh"

const i64 STORED_BYTES = 5, TRAILER_BYTES = 8;
// Store the low `bytes` bytes of a value at address `at`, little-endian. Return the address after them.
HOST_DEVICE u8* put(u8* at, u32 value, i32 bytes) {
    for (i32 i = 0; i < bytes; ++i) at[i] = (u8)(value >> (8 * i));
    return at + bytes;
}

// Write `count` bytes, at most 65535, to `at` as a final stored deflate block (RFC 1951). Return the address after it.
HOST_DEVICE u8* store(u8* at, const u8* bytes, i64 count) {
    *at++ = 1;
    at = put(put(at, (u32)count, 2), (u32)count ^ 0xFFFF, 2);
    for (i64 i = 0; i < count; ++i) at[i] = bytes[i];
    return at + count;
}

// Compress the text `data` into consecutive BGZF blocks, each of block_bytes of text but the last. One item. sizes:
// bytes of each block, -1 if libdeflate has no memory. header: first bytes of every block, before its size field.
// level: of libdeflate. A block that would not become smaller is stored.
KERNEL void compress_blocks(Items items, const u8* data OF(size), const u8* header OF(header_bytes),
        u8* blocks OF(capacity), i64* sizes OF(count), Libdeflate library, i64 size, i64 header_bytes, i64 capacity,
        i64 count, i64 block_bytes, i32 level) {
    FOR_EACH(item, items) {
        void* compressor = library.compressor(level);
        u8 *at = blocks, *limit = blocks + capacity;
        for (i64 block = 0; block < count; ++block) {
            if (!compressor) {
                sizes[block] = -1;
                continue;
            }
            const u8* text = data + block * block_bytes;
            i64 bytes = minimum(block_bytes, size - block * block_bytes);
            u8 *start = at, *size_at = at + header_bytes;
            for (i64 i = 0; i < header_bytes; ++i) at[i] = header[i];
            at += header_bytes + 2;
            i64 compressed = library.compress(compressor, text, bytes, at, limit - at);
            at = compressed && compressed < bytes + STORED_BYTES ? at + compressed : store(at, text, bytes);
            at = put(put(at, library.checksum(text, bytes), 4), (u32)bytes, 4);
            sizes[block] = at - start;
            put(size_at, (u32)(at - start - 1), 2);
        }
        if (compressor) library.release(compressor);
    }
}
