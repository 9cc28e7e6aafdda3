// What an alignment's columns cost. Penalties are positive; a gap of k bases costs gap_open + k * gap_extend, but never
// more than long_gap: a genome gains or loses fifty bases at once not much more rarely than ten. An alignment that
// reaches an end of the read earns clip_penalty there, which decides between alignments but is no part of the score that
// is told. A column with an ambiguous base costs 1.
#pragma once
#include "common/portable.cuh"

struct Scoring {
    i32 match, mismatch, gap_open, gap_extend, long_gap, clip_penalty;

    HOST_DEVICE i32 gap(i32 bases) const { return minimum(gap_open + bases * gap_extend, long_gap); }
    // An alignment of the whole read without a difference, bonuses included.
    HOST_DEVICE i32 perfect(i32 length) const { return match * length + 2 * clip_penalty; }
};

const i32 AMBIGUOUS_PENALTY = 1;

#define SCORING_ARGUMENTS i32 match, i32 mismatch, i32 gap_open, i32 gap_extend, i32 long_gap, i32 clip_penalty
#define SCORING \
    Scoring { match, mismatch, gap_open, gap_extend, long_gap, clip_penalty }
