// The recurrence of pairwise alignment with affine gaps, and the order of cells with equal scores (Gotoh 1982).
//
//   E(i, j) = max(H(i, j-1) - open, E(i, j-1)) - extend      deletion, a letter of the target alone
//   F(i, j) = max(H(i-1, j) - open, F(i-1, j)) - extend      insertion, a letter of the query alone
//   H(i, j) = max(H(i-1, j-1) + p(i, j), E(i, j), F(i, j)), at least 0 in a local alignment
//
// for i letters of the query and j letters of the target. The score p of letters depends on the scheme (schemes.cuh).
#pragma once
#include "common/portable.cuh"

enum Mode { LOCAL = 0, GLOBAL = 1, SEMIGLOBAL = 2 };  // SEMIGLOBAL: the whole query, any part of the target

// Bounds of the score of two letters, highest >= 0 and lowest <= 0, and the costs of gaps.
struct BaseScheme {
    i32 highest, lowest, gap_open, gap_extend;
    HOST_DEVICE i32 first_gap() const { return gap_open + gap_extend; }
};

// CIGAR operations as in BAM.
enum Operation { INSERTED = 1, DELETED = 2, EQUAL = 7, DIFFERENT = 8 };

// Return true if cell (i, j) precedes another with its score: on a lower anti-diagonal, or further right on the same.
HOST_DEVICE bool ends_before(i64 i, i64 j, i64 other_i, i64 other_j) {
    return i + j != other_i + other_j ? i + j < other_i + other_j : j > other_j;
}
