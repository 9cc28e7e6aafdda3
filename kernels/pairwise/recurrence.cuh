// What comparisons of two sequences have in common: the recurrence, and the order of what scores the same.
//
//   E(i, j) = max(H(i, j-1) - open, E(i, j-1)) - extend      a letter of the target against none
//   F(i, j) = max(H(i-1, j) - open, F(i-1, j)) - extend      a letter of the query against none
//   H(i, j) = max(H(i-1, j-1) + p(i, j), E(i, j), F(i, j)), in a local alignment no less than 0
//
// for i letters of the query and j of the target (Gotoh 1982). What two letters score, p, is the scheme's: Identity
// (identity.cuh) or Substitution (substitution.cuh).
#pragma once
#include "common/portable.cuh"

enum Mode { LOCAL = 0, GLOBAL = 1, SEMIGLOBAL = 2 };  // semi-global: all of the query, any part of the target

// Of a scheme: what two letters score at most and at least, no less and no more than 0, and what gaps cost.
struct BaseScheme {
    i32 highest, lowest, gap_open, gap_extend;

    HOST_DEVICE i32 first_gap() const { return gap_open + gap_extend; }
};

// Operations of a CIGAR, as in BAM: a letter of the query against none, one of the target against none, two letters.
enum Operation { INSERTED = 1, DELETED = 2, EQUAL = 7, DIFFERENT = 8 };

// Of cells with the same score the one in the lowest anti-diagonal is the end, and in that the rightmost one.
HOST_DEVICE bool ends_before(i64 i, i64 j, i64 other_i, i64 other_j) {
    return i + j != other_i + other_j ? i + j < other_i + other_j : j > other_j;
}
