// The functions of libdeflate, from a Python package, by their addresses in this process; called by the host only.
#pragma once
#include "common/portable.cuh"

struct Libdeflate {
    u64 alloc_compressor, deflate_compress, crc32, free_compressor;
    u64 alloc_decompressor, gzip_decompress_ex, free_decompressor;
    HOST_DEVICE void* compressor(i32 level) const { return ((void* (*)(i32))alloc_compressor)(level); }
    HOST_DEVICE void release(void* compressor) const { ((void (*)(void*))free_compressor)(compressor); }
    // The size of the compressed bytes, 0 if they exceed the capacity.
    HOST_DEVICE i64 compress(void* compressor, const u8* bytes, i64 count, u8* target, i64 capacity) const {
        typedef u64 Compress(void*, const void*, u64, void*, u64);
        return (i64)((Compress*)deflate_compress)(compressor, bytes, (u64)count, target, (u64)capacity);
    }
    HOST_DEVICE u32 checksum(const u8* bytes, i64 count) const {
        return ((u32 (*)(u32, const void*, u64))crc32)(0, bytes, (u64)count);
    }
    HOST_DEVICE void* decompressor() const { return ((void* (*)())alloc_decompressor)(); }
    HOST_DEVICE void release_decompressor(void* decompressor) const {
        ((void (*)(void*))free_decompressor)(decompressor);
    }
    // The size of a gzip member's contents; -1 if it is corrupt, truncated, too large or followed by bytes.
    HOST_DEVICE i64 inflate(void* decompressor, const u8* bytes, i64 count, u8* target, i64 capacity) const {
        typedef i32 Inflate(void*, const void*, u64, void*, u64, u64*, u64*);
        u64 taken = 0, made = 0;
        i32 failure =
                ((Inflate*)gzip_decompress_ex)(decompressor, bytes, (u64)count, target, (u64)capacity, &taken, &made);
        return failure || taken != (u64)count ? -1 : (i64)made;
    }
};
