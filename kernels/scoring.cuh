// What an alignment's columns cost. Penalties are positive; a gap of k bases costs gap_open + k * gap_extend. An
// alignment that reaches an end of the read earns clip_penalty there, which decides between alignments but is no part
// of the score that is told. A column with an ambiguous base costs 1.
#pragma once
#include "portable.cuh"

struct Scoring {
    i32 match, mismatch, gap_open, gap_extend, clip_penalty;

    // An alignment of the whole read without a difference, bonuses included.
    HOST_DEVICE i32 perfect(i32 length) const { return match * length + 2 * clip_penalty; }
};

const i32 AMBIGUOUS_PENALTY = 1;

#define SCORING_ARGUMENTS i32 match, i32 mismatch, i32 gap_open, i32 gap_extend, i32 clip_penalty
#define SCORING Scoring{match, mismatch, gap_open, gap_extend, clip_penalty}
