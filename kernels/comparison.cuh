// What comparisons of two sequences have in common: their letters, their scores, and the order of what scores the same.
//
//   E(i, j) = max(H(i, j-1) - open, E(i, j-1)) - extend      a letter of the target against none
//   F(i, j) = max(H(i-1, j) - open, F(i-1, j)) - extend      a letter of the query against none
//   H(i, j) = max(H(i-1, j-1) + p(i, j), E(i, j), F(i, j)), in a local alignment no less than 0
//
// for i letters of the query and j of the target (Gotoh 1982).
#pragma once
#include "portable.cuh"

enum Mode { LOCAL = 0, GLOBAL = 1, SEMIGLOBAL = 2 };  // semi-global: all of the query, any part of the target

// 0 to 3 for A, C, G and T; any other letter matches none, not even itself.
const i32 NO_LETTER = 4;

struct Comparison {
    i32 match, mismatch, gap_open, gap_extend;

    HOST_DEVICE i32 score(i32 query, i32 target) const { return query == target && query < NO_LETTER ? match : -mismatch; }
    HOST_DEVICE i32 first_gap() const { return gap_open + gap_extend; }
};

#define COMPARISON_ARGUMENTS i32 match, i32 mismatch, i32 gap_open, i32 gap_extend
#define COMPARISON Comparison{match, mismatch, gap_open, gap_extend}

// Of cells with the same score the one in the lowest anti-diagonal is the end, and in that the rightmost one.
HOST_DEVICE bool ends_before(i64 i, i64 j, i64 other_i, i64 other_j) {
    return i + j != other_i + other_j ? i + j < other_i + other_j : j > other_j;
}
