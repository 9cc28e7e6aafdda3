// Scores of an alignment; penalties are positive.
//
// A gap of k bases costs its opening and k times its extension, but never more than long_gap: a genome gains or loses
// fifty bases at once not much more rarely than ten. An alignment that reaches an end of the read earns the clipping
// penalty of that end as a bonus, which decides between alignments but is not part of the reported score. A column with
// an ambiguous base costs AMBIGUOUS_PENALTY.
#pragma once
#include "common/portable.cuh"

struct Scoring {
    i32 match, mismatch, deletion_open, deletion_extend, insertion_open, insertion_extend, long_gap;
    i32 clip_5, clip_3;    // of the read as it was sequenced
    i32 min_score;         // minimum score of an alignment, without bonuses
    i32 paired_min_score;  // the same if the read's mate supports the placement
    i32 unpaired_phred;    // phred by which placements that make no fragment must explain the reads better
    HOST_DEVICE i32 first_deleted() const { return deletion_open + deletion_extend; }
    HOST_DEVICE i32 first_inserted() const { return insertion_open + insertion_extend; }
    HOST_DEVICE bool gaps_alike() const {
        return deletion_open == insertion_open && deletion_extend == insertion_extend;
    }
    HOST_DEVICE i32 deletion(i32 bases) const { return minimum(deletion_open + bases * deletion_extend, long_gap); }
    HOST_DEVICE i32 insertion(i32 bases) const { return minimum(insertion_open + bases * insertion_extend, long_gap); }
    // The cheaper one of a deletion and an insertion.
    HOST_DEVICE i32 min_gap_cost(i32 bases) const { return minimum(deletion(bases), insertion(bases)); }
    // Bonuses of the ends of a read that lies on the reference as sequenced, or reversed.
    HOST_DEVICE i32 left_clip(bool reversed) const { return reversed ? clip_3 : clip_5; }
    HOST_DEVICE i32 right_clip(bool reversed) const { return reversed ? clip_5 : clip_3; }
    HOST_DEVICE i32 both_clips() const { return clip_5 + clip_3; }
    // Return the score of the whole read without a difference, bonuses included.
    HOST_DEVICE i32 perfect(i32 length) const { return match * length + both_clips(); }
};

const i32 AMBIGUOUS_PENALTY = 1;
