// Placements of a read: when two windows are the same placement, which ones are rivals, and how much a rival counts.
#pragma once
#include "mapping/mapping_quality.cuh"

// Why a further search may find more. REPETITIVE: suffixes were left unexamined. DIVERGENT: the best window loses more
// than a few mismatches, so seeds may have been too long or too far apart for the right one. SPLIT: the best window
// leaves a part of the read uncovered, whose windows may have been displaced. UNSEARCHED: not searched by seeds yet.
// ALT_HIDDEN: many of the unexamined suffixes may lie on ALT contigs.
enum Unresolved { REPETITIVE = 1, DIVERGENT = 2, SPLIT = 4, UNSEARCHED = 8, ALT_HIDDEN = 16 };

const i32 NO_DEFICIT = 32767;  // more than any deficit that still counts
// The chosen placement of every read of a batch, by slot.
struct PlacementTable {
    i32* chosen OF(reads);                   // rank of the chosen window, -1 for none
    i32* suboptimal_scores OF(reads);        // score of the best rival, 0 for none
    u8* mapqs OF(reads);                     // phred of the probability that the read belongs elsewhere, 0 to 60
    i16* deficits OF(reads* MAX_WINDOWS);    // of each window: phred by which the chosen one explains the read better
    u8* variant_phreds OF(reads);            // phred of a difference between sample and reference, as the read shows it
    u8* unresolved OF(reads);                // bits of Unresolved; 0 if no search would find more
    u8* unresolved_before_search OF(reads);  // the same before the seed search: 0 if partition seeds resolve the read
    u8* properly_paired OF(reads);           // 1 if the placements of the read and its mate make a fragment
    i32* uncovered_starts OF(reads);  // part of the read, in orientation 0, that the placement leaves uncovered, or all
    i32* uncovered_ends OF(reads);
};

// Return true if two windows are one placement. A palindrome has the same placement on both strands.
HOST_DEVICE bool is_same_placement(const Window& a, const Window& b) {
    return is_near(a, b) || a.diagonal == b.diagonal;
}
// Return true if another window leads to the chosen alignment, too: a band covers the diagonals of other windows.
HOST_DEVICE bool is_same_alignment(const Window& other, const Window& chosen) {
    i64 offset = chosen.diagonal - other.diagonal - (other.low + other.high) / 2;
    return other.score == chosen.score && other.gapped() && other.orientation == chosen.orientation &&
            2 * maximum(offset, -offset) <= band_width(other.band);
}

// Return true if both windows align the same part of the read.
HOST_DEVICE bool is_same_part(const Window& a, const Window& b, i32 length) {
    return span_of(a, length).overlaps(span_of(b, length));
}
// Return true if `other` is another placement of the part of the read that `chosen` aligns.
HOST_DEVICE bool is_rival(const Window& other, const Window& chosen, i32 length) {
    return !is_same_placement(other, chosen) && !is_same_alignment(other, chosen) &&
            is_same_part(other, chosen, length);
}

// Return a lower bound of the alignment's score without end bonuses, which decides whether it is an alignment at all.
HOST_DEVICE i32 score_without_bonuses(const Window& window, i32 length, bool reversed, const Scoring& scoring) {
    if (window.gapped()) return window.score - scoring.both_clips();
    return window.score - (window.start == 0 ? scoring.left_clip(reversed) : 0) -
            (window.end == length ? scoring.right_clip(reversed) : 0);
}

// Return true if the window is certain to be reported; with bonuses alone it may turn out to be no alignment.
HOST_DEVICE bool is_alignment(const Window& window, i32 length, bool reversed, const Scoring& scoring) {
    return score_without_bonuses(window, length, reversed, scoring) >= scoring.min_score;
}
// Return the phred of a difference between sample and reference if `bases` bases of a read lose `lost` points. The
// alignment of a part may be longer than what its segments cover, and then lose less than nothing.
HOST_DEVICE i32 variant_phred_of_loss(i32 bases, i32 lost, i32 bases_per_difference, const Scoring& scoring) {
    return phred_of_variant(maximum(lost, 0) / (scoring.match + scoring.mismatch), bases, bases_per_difference);
}
// Return how many phred worse than `score` points an unexamined placement is that may share `unexamined` bases.
HOST_DEVICE i32 unexamined_deficit(i32 unexamined, i32 score, i32 variant_phred, const Scoring& scoring) {
    return unexamined ? maximum(points_to_phred(score - scoring.perfect(unexamined), variant_phred, scoring), 0)
                      : NO_DEFICIT;
}

// Return the maximum MAPQ of a placement that explains `explained` of `perfect` points: with each difference it is more
// likely that an equally good placement shares no seed. If 8 and 12 % of the bases differ, reads that explain 22, 30,
// 38 and 46 of 100 points are wrong by 20, 25, 33 and 40 phred.
HOST_DEVICE i32 mapq_cap(i32 explained, i32 perfect) {
    return (i32)clamp((i64)100 * explained / perfect - 5, (i64)0, (i64)60);
}
