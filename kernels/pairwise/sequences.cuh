// Concatenated sequences, as codes.
#pragma once
#include "common/portable.cuh"

const i32 PAD = 16;  // bytes after the last letter that may be read

struct Sequences {
    const u8* codes OF(any);
    const i64* offsets OF(pairs + 1);  // sequence i is [offsets[i], offsets[i + 1])

    HOST_DEVICE i32 length(i64 i) const { return (i32)(offsets[i + 1] - offsets[i]); }
    HOST_DEVICE const u8* sequence(i64 i) const { return codes + offsets[i]; }
};
