// Scores of nucleotides: all letters that are equal score the same, and so do all that are not.
#pragma once
#include "pairwise/comparison.cuh"

struct Identity : Limits {
    // 0 to 3 for A, C, G and T; any other letter matches none, not even itself.
    static const i32 NO_LETTER = 4;
    static const bool ONLY_LOCAL = false;

    HOST_DEVICE static bool equal(i32 query, i32 target) { return query == target && query < NO_LETTER; }
    HOST_DEVICE i32 score(i32 query, i32 target) const { return equal(query, target) ? highest : lowest; }
    // All bits of those of eight bytes that are no letters.
    HOST_DEVICE static u64 without_letter(u64 eight) { return (eight >> 2 & 0x0101010101010101ull) * 255; }
};

#define SCHEME_ARGUMENTS LIMIT_ARGUMENTS
#define SCHEME \
    Identity { LIMITS }
