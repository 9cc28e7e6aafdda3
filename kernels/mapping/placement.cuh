// Places that one read may have: when two are one, which are rivals, and what a rival's score says.
#pragma once
#include "mapping/mapping_quality.cuh"

// Why a search may find more: there was none yet; places may have been unexamined; the best one loses more than a few mismatches, so that
// seeds may have been too long or too far apart for the right one; it leaves a part of the read over, of which places may
// have been crowded out by those of the other part; of places that may have been unexamined many are on ALT contigs.
enum Unresolved { REPETITIVE = 1, DIVERGENT = 2, SPLIT = 4, UNSEARCHED = 8, ALT_HIDDEN = 16 };

const i32 NO_DEFICIT = 32767;  // more than any place that is still thought of

// The choice of every read of a batch, by slot.
struct PlacementTable {
    i32* chosen OF(reads);                 // the rank of the chosen window, -1 for none
    i32* suboptimal_scores OF(reads);                // the score of the best rival, 0 for none
    u8* mapqs OF(reads);                   // phred of the probability that the read belongs elsewhere, 0 to 60
    i16* deficits OF(reads* MAX_WINDOWS);  // of each window: phred by which the chosen one explains the read better
    u8* variant_phreds OF(reads);                // phred of a difference of the sample, as the read shows it
    u8* unresolved OF(reads);               // why a search may find more: an Unresolved's bits
    u8* unresolved_before_search OF(reads);                    // the same before any search by seeds: 0 where look-ups settle the read
    u8* properly_paired OF(reads);                   // 1 where the place and that of the mate make a fragment
    i32* uncovered_starts OF(reads);  // the part that the place leaves over of the read, in orientation 0, or all of it
    i32* uncovered_ends OF(reads);
};

// A palindrome has one place on both strands.
HOST_DEVICE bool same_place(const Window& a, const Window& b) { return beside(a, b) || a.diagonal == b.diagonal; }

// Whether a rival is the chosen alignment once more, found from beside: a band reaches diagonals of other windows.
HOST_DEVICE bool same_alignment(const Window& rival, const Window& chosen) {
    i64 offset = chosen.diagonal - rival.diagonal - (rival.low + rival.high) / 2;
    return rival.score == chosen.score && rival.gapped() && rival.orientation == chosen.orientation &&
           2 * maximum(offset, -offset) <= band_width(rival.band);
}

// Whether both windows place one part of the read.
HOST_DEVICE bool same_part(const Window& a, const Window& b, i32 length) {
    return span_of(a, length).rivals(span_of(b, length));
}

// Whether the other window is another place of the part of the read that the chosen one places.
HOST_DEVICE bool is_rival(const Window& other, const Window& chosen, i32 length) {
    return !same_place(other, chosen) && !same_alignment(other, chosen) && same_part(other, chosen, length);
}

// What its alignment scores at least, without bonuses: what decides whether it is an alignment at all.
HOST_DEVICE i32 score_without_bonuses(const Window& window, i32 length, bool reversed, const Scoring& scoring) {
    if (window.gapped()) return window.score - scoring.both_clips();
    return window.score - (window.begin == 0 ? scoring.left_clip(reversed) : 0) -
           (window.end == length ? scoring.right_clip(reversed) : 0);
}

// Whether the window is sure to be reported: with bonuses alone it may yet prove to be no alignment.
HOST_DEVICE bool is_alignment(const Window& window, i32 length, bool reversed, const Scoring& scoring) {
    return score_without_bonuses(window, length, reversed, scoring) >= scoring.min_score;
}

// Phred of a difference of the sample, as `bases` of a read that lose some points show it. A part's alignment may be longer
// than what its segments cover, and then lose less than nothing.
HOST_DEVICE i32 variant_phred_of_loss(i32 bases, i32 lost, i32 bases_per_difference, const Scoring& scoring) {
    return phred_of_variant(maximum(lost, 0) / (scoring.match + scoring.mismatch), bases, bases_per_difference);
}

// What was not looked at counts as a place that shares this much: within a homopolymer all of the read.
HOST_DEVICE i32 unexamined_deficit(i32 unexamined, i32 score, i32 variant, const Scoring& scoring) {
    return unexamined ? maximum(points_to_phred(score - scoring.perfect(unexamined), variant, scoring), 0) : NO_DEFICIT;
}

// The MAPQ of a place that explains so much of what is perfect: with each difference it is likelier that a place as good
// shares no seed. Where 8 and 12 % of the bases differ, reads that explain 22, 30, 38 and 46 of 100 points are wrong by 20,
// 25, 33 and 40 phred.
HOST_DEVICE i32 mapq_cap(i32 explained, i32 perfect) {
    return (i32)clamp((i64)100 * explained / perfect - 5, (i64)0, (i64)60);
}
