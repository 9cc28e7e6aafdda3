// libdeflate, which lies in a Python package: its functions come as addresses, of this process. No device but the host calls
// them.
#pragma once
#include "common/portable.cuh"

struct Libdeflate {
    u64 alloc_compressor, deflate_compress, crc32, free_compressor;
    u64 alloc_decompressor, gzip_decompress_ex, free_decompressor;

    HOST_DEVICE void* compressor(i32 level) const { return ((void* (*)(i32))alloc_compressor)(level); }
    HOST_DEVICE void release(void* compressor) const { ((void (*)(void*))free_compressor)(compressor); }
    // Bytes of the compressed ones; 0 where there is no room for them.
    HOST_DEVICE i64 compress(void* compressor, const u8* bytes, i64 count, u8* target, i64 room) const {
        typedef u64 Compress(void*, const void*, u64, void*, u64);
        return (i64)((Compress*)deflate_compress)(compressor, bytes, (u64)count, target, (u64)room);
    }
    HOST_DEVICE u32 checksum(const u8* bytes, i64 count) const {
        return ((u32 (*)(u32, const void*, u64))crc32)(0, bytes, (u64)count);
    }
    HOST_DEVICE void* decompressor() const { return ((void* (*)())alloc_decompressor)(); }
    HOST_DEVICE void release_decompressor(void* decompressor) const {
        ((void (*)(void*))free_decompressor)(decompressor);
    }
    // Bytes of the contents of one gzip member; -1 where it is corrupt, is not all there, is not all there is, or finds no room.
    HOST_DEVICE i64 inflate(void* decompressor, const u8* bytes, i64 count, u8* target, i64 room) const {
        typedef i32 Inflate(void*, const void*, u64, void*, u64, u64*, u64*);
        u64 taken = 0, made = 0;
        i32 failure = ((Inflate*)gzip_decompress_ex)(decompressor, bytes, (u64)count, target, (u64)room, &taken, &made);
        return failure || taken != (u64)count ? -1 : (i64)made;
    }
};
