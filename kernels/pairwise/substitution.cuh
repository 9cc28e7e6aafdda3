// Scores of a substitution matrix: those of each letter of the query with each of the target.
#pragma once
#include "pairwise/comparison.cuh"

struct Substitution : Limits {
    // Codes are less than 32; the last one is no letter, and its scores are the lowest.
    static const i32 LETTERS = 32, NO_LETTER = 31;
    static const bool ONLY_LOCAL = true;
    const i32* matrix;  // [LETTERS, LETTERS], of the query and the target

    HOST_DEVICE static bool equal(i32 query, i32 target) { return query == target; }
    HOST_DEVICE i32 score(i32 query, i32 target) const { return matrix[query * LETTERS + target]; }
    HOST_DEVICE static u64 without_letter(u64) { return 0; }
};

#define SCHEME_ARGUMENTS const i32 *matrix, LIMIT_ARGUMENTS
#define SCHEME \
    Substitution { LIMITS, matrix }
