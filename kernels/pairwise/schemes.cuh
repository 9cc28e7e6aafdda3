// Scoring schemes: one score for equal and one for different nucleotides, or a substitution matrix.
#pragma once
#include "pairwise/recurrence.cuh"

const i32 NOT_NUCLEOTIDE = 4;  // A, C, G and T are 0 to 3; other letters match nothing, not even themselves

struct Identity : BaseScheme {
    HOST_DEVICE static constexpr i32 letter_count() { return NOT_NUCLEOTIDE; }
    HOST_DEVICE static constexpr bool is_local_only() { return false; }
    HOST_DEVICE static bool equal(i32 query, i32 target) { return query == target && query < NOT_NUCLEOTIDE; }
    HOST_DEVICE i32 score(i32 query, i32 target) const { return equal(query, target) ? highest : lowest; }
    // A mask of the bytes, of eight, that are not letters.
    HOST_DEVICE static u64 non_letters(u64 eight) { return (eight >> 2 & 0x0101010101010101ull) * 255; }
};

const i32 CODES = 32, NO_CODE = 31;  // codes are below CODES; NO_CODE is not a letter and has the lowest scores

struct Substitution : BaseScheme {
    const i32* matrix OF(CODES* CODES);  // [CODES, CODES], row: query, column: target
    HOST_DEVICE static constexpr i32 letter_count() { return NO_CODE; }
    HOST_DEVICE static constexpr bool is_local_only() { return true; }
    HOST_DEVICE static bool equal(i32 query, i32 target) { return query == target; }
    HOST_DEVICE i32 score(i32 query, i32 target) const { return matrix[query * CODES + target]; }
    HOST_DEVICE static u64 non_letters(u64) { return 0; }
};
