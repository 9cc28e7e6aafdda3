// Places that one read may have: when two are one, which are rivals, and what a rival's score says.
#pragma once
#include "search/mapping_quality.cuh"

const i32 NO_LOSS = 32767;  // more than any place that is still thought of

// A palindrome has one place on both strands.
HOST_DEVICE bool same_place(const Window& a, const Window& b) { return beside(a, b) || a.diagonal == b.diagonal; }

// Whether a rival is the chosen alignment once more, found from beside: a band reaches diagonals of other windows.
HOST_DEVICE bool same_alignment(const Window& rival, const Window& chosen) {
    i64 offset = chosen.diagonal - rival.diagonal - (rival.low + rival.high) / 2;
    return rival.score == chosen.score && rival.gapped() && rival.orientation == chosen.orientation &&
           2 * maximum(offset, -offset) <= band_width(rival.band);
}

// Whether the other window is another place of the piece of the read that the chosen one places.
HOST_DEVICE bool is_rival(const Window& other, const Window& chosen, i32 length) {
    return !same_place(other, chosen) && !same_alignment(other, chosen) &&
           span_of(other, length).rivals(span_of(chosen, length));
}

// What its alignment scores at least, without bonuses: what decides whether it is an alignment at all.
HOST_DEVICE i32 least_score(const Window& window, i32 length, const Scoring& scoring) {
    i32 ends = window.gapped() ? 2 : (window.begin == 0) + (window.end == length);
    return window.score - ends * scoring.clip_penalty;
}

// Phred of a difference of the sample, as `bases` of a read that lose some points show it. A part's alignment may be longer
// than what its segments cover, and then lose less than nothing.
HOST_DEVICE i32 variant_of(i32 bases, i32 lost, i32 clean_bases, const Scoring& scoring) {
    return phred_of_variant(maximum(lost, 0) / (scoring.match + scoring.mismatch), bases, clean_bases);
}

// What was not looked at counts as a place that shares this much: within a homopolymer all of the read.
HOST_DEVICE i32 missed_loss(i32 missed, i32 score, i32 variant, const Scoring& scoring) {
    return missed ? maximum(in_phred(score - scoring.perfect(missed), variant, scoring), 0) : NO_LOSS;
}
