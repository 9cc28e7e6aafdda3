// Scores of a substitution matrix: those of each letter of the query with each of the target.
#pragma once
#include "pairwise/recurrence.cuh"

// Codes are less than CODES; the last one is no letter, and its scores are the lowest.
const i32 CODES = 32, NO_CODE = 31;

struct Substitution : BaseScheme {
    const i32* matrix OF(CODES* CODES);  // [CODES, CODES], of the query and the target

    HOST_DEVICE static constexpr i32 letter_count() { return NO_CODE; }
    HOST_DEVICE static constexpr bool is_local_only() { return true; }

    HOST_DEVICE static bool equal(i32 query, i32 target) { return query == target; }
    HOST_DEVICE i32 score(i32 query, i32 target) const { return matrix[query * CODES + target]; }
    HOST_DEVICE static u64 non_letters(u64) { return 0; }
};
