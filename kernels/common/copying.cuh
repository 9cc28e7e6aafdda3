// Bytes that a group copies together.
#pragma once
#include "common/portable.cuh"

HOST_DEVICE void warp_copy(const u8* __restrict__ source, i64 length, u8* __restrict__ target) {
    for (i64 i = warp_lane(); i < length; i += WARP_WIDTH) target[i] = source[i];
}
