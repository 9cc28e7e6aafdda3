// What an alignment's columns cost. Penalties are positive; a gap of k bases costs its opening and k times its extension,
// but never more than long_gap: a genome gains or loses fifty bases at once not much more rarely than ten. An alignment
// that reaches an end of the read earns there what clipping it costs, which decides between alignments but is no part of
// the score that is reported. A column with an ambiguous base costs 1.
#pragma once
#include "common/portable.cuh"

struct Scoring {
    i32 match, mismatch, deletion_open, deletion_extend, insertion_open, insertion_extend, long_gap;
    i32 clip_5, clip_3;    // of the read as it was sequenced
    i32 min_score;         // what an alignment has to score, without those bonuses
    i32 paired_min_score;       // the same where the read's mate can_pair for its place
    i32 unpaired_phred;  // phred by which places that make no fragment have to explain the reads better

    HOST_DEVICE i32 first_deleted() const { return deletion_open + deletion_extend; }
    HOST_DEVICE i32 first_inserted() const { return insertion_open + insertion_extend; }
    HOST_DEVICE bool gaps_alike() const {
        return deletion_open == insertion_open && deletion_extend == insertion_extend;
    }
    HOST_DEVICE i32 deletion(i32 bases) const { return minimum(deletion_open + bases * deletion_extend, long_gap); }
    HOST_DEVICE i32 insertion(i32 bases) const { return minimum(insertion_open + bases * insertion_extend, long_gap); }
    // Of phred_sum kind, the cheaper one.
    HOST_DEVICE i32 least_gap(i32 bases) const { return minimum(deletion(bases), insertion(bases)); }
    // Of the ends of a read that lies on the reference as it was sequenced, or reversed.
    HOST_DEVICE i32 left_clip(bool reversed) const { return reversed ? clip_3 : clip_5; }
    HOST_DEVICE i32 right_clip(bool reversed) const { return reversed ? clip_5 : clip_3; }
    HOST_DEVICE i32 both_clips() const { return clip_5 + clip_3; }
    // An alignment of the whole read without a difference, bonuses included.
    HOST_DEVICE i32 perfect(i32 length) const { return match * length + both_clips(); }
};

const i32 AMBIGUOUS_PENALTY = 1;
