// What an alignment's columns cost. Penalties are positive; a gap of k bases costs gap_open + k * gap_extend, but never
// more than long_gap: a genome gains or loses fifty bases at once not much more rarely than ten. An alignment that
// reaches an end of the read earns clip_penalty there, which decides between alignments but is no part of the score that
// is reported. A column with an ambiguous base costs 1.
#pragma once
#include "common/portable.cuh"

struct Scoring {
    i32 match, mismatch, gap_open, gap_extend, long_gap, clip_penalty;
    i32 min_score;         // what an alignment has to score, without those bonuses
    i32 joint_score;       // the same where the read's mate vouches for its place
    i32 unpaired_deficit;  // phred by which places that make no fragment have to explain the reads better

    HOST_DEVICE i32 gap(i32 bases) const { return minimum(gap_open + bases * gap_extend, long_gap); }
    // An alignment of the whole read without a difference, bonuses included.
    HOST_DEVICE i32 perfect(i32 length) const { return match * length + 2 * clip_penalty; }
};

const i32 AMBIGUOUS_PENALTY = 1;
