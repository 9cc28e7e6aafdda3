// The probability that a read belongs elsewhere, in phred, computed with integers only.
//
// The error of the best placement is the sum of the likelihoods of the others over its own. The likelihood of a
// placement is the probability that a read from there looks like this one: each difference is a sequencing error, as
// likely as the base quality says, or a variant, the likelier the more of them the best placement needs.
#pragma once
#include "common/text.cuh"
#include "mapping/ungapped.cuh"
#include "mapping/windows.cuh"

const i32 NO_QUALITY = 25;  // phred of a base without a quality
const i32 NEGLIGIBLE = 60;  // rivals of at least this phred add nothing
// Phred at which gene conversion between two copies outweighs the bases that distinguish them.
const i32 GENE_CONVERSION_PHRED = 45;
const i32 RELIABLE = 20;           // phred of a base whose difference is more likely the sample's than the sequencer's
const i32 COPIES_PER_MISSED = 64;  // for this many copies that were found one was missed
const i32 PHRED_ONE_OF_THREE = 5;  // phred of one particular of the three other bases
// Return 10^(-phred / 10) in units of 2^-24; phred in 0..72.
HOST_DEVICE u64 likelihood(i32 phred) {
    const u32 units[10] = {16777216, 13326602, 10585679, 8408493, 6679095, 5305384, 4214209, 3347459, 2658975, 2112092};
    const u32 tens[8] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    return (units[phred % 10] + tens[phred / 10] / 2) / tens[phred / 10];
}

// Return the largest phred in 0..60 whose likelihood is at least part / whole.
HOST_DEVICE i32 phred_of(u64 part, u64 whole) {
    i32 phred = 0;
    while (phred < 60 && (part << 24) <= likelihood(phred + 1) * whole) ++phred;
    return phred;
}

// The other placements of a read, each by how many phred it explains the read worse than the chosen one.
struct Rivals {
    u64 likelihoods;  // their sum, with a share for placements that were not found
    HOST_DEVICE void add(i32 phred) {
        if (phred >= NEGLIGIBLE) return;
        u64 rival = likelihood(maximum(phred, 0));
        likelihoods += rival + rival / COPIES_PER_MISSED;
    }
    HOST_DEVICE i32 mapping_quality() const {
        u64 error = likelihoods ? likelihoods + likelihood(GENE_CONVERSION_PHRED) : 0;
        return phred_of(error, error + (1ull << 24));
    }
};

// Return the phred of the sum of two probabilities given in phred, exact to less than one.
HOST_DEVICE i32 phred_sum(i32 a, i32 b) {
    i32 apart = maximum(a, b) - minimum(a, b);
    return minimum(a, b) - (apart < 2 ? 3 : apart < 5 ? 2 : apart < 10 ? 1 : 0);
}

struct Qualities {
    const u8* first;  // null if the read has no qualities
    i32 length;
    bool reversed;
    HOST_DEVICE i32 at(i32 i) const { return first ? first[reversed ? length - 1 - i : i] - 33 : NO_QUALITY; }
};

// Return the qualities of a read in orientation 0, or in orientation 1 if `reversed`.
HOST_DEVICE Qualities qualities_of(const ReadTexts& texts, const Queries& queries, i64 slot, bool reversed) {
    i64 start = texts.quality_starts[queries.order[slot]];
    return Qualities{
            start < 0 ? nullptr : texts.bytes + start, queries.lengths[slot], queries.reversed(slot, reversed)};
}

// Return the read of a slot placed on a window's own diagonal.
HOST_DEVICE UngappedAlignment place_ungapped(
        const Reference& reference, const Queries& queries, i64 slot, const Window& window) {
    return place_ungapped(reference, queries, slot, window.orientation, window.diagonal, window.start);
}

// Count the differences in a window without gaps that are more likely the sample's than the sequencer's (RELIABLE).
HOST_DEVICE i32 reliable_differences(
        const UngappedAlignment& ungapped, const Window& window, const Qualities& qualities) {
    i32 reliable = 0;
    for (i32 i = window.start; i < window.end; i += 32) {
        u64 ambiguous_marks, marks = ungapped.mismatches(i, ambiguous_marks);
        for (marks &= ~ambiguous_marks & leading_mask(window.end - i); marks;) {
            i32 position = i + first_set_base(marks);
            marks ^= 1ull << (62 - 2 * (position - i));
            reliable += qualities.at(position) >= RELIABLE;
        }
    }
    return reliable;
}

// Return reliable_differences plus the number of differences that would cost what the clipped bases lose.
HOST_DEVICE i32 real_differences(
        const UngappedAlignment& ungapped, const Window& window, const Qualities& qualities, const Scoring& scoring) {
    i32 clipped = window.start + qualities.length - window.end;
    return reliable_differences(ungapped, window, qualities) +
            clipped * scoring.match / (scoring.match + scoring.mismatch);
}

// Return the phred of a difference between sample and reference for a read of `length` bases with `differences`
// differences at its best placement; the prior is one in `bases_per_difference`.
HOST_DEVICE i32 phred_of_variant(i32 differences, i32 length, i32 bases_per_difference) {
    return PHRED_ONE_OF_THREE + phred_of((u64)(1 + differences), (u64)(bases_per_difference + length));
}
// Return lost points in phred: a difference of variant_phred loses a match and costs a mismatch.
HOST_DEVICE i32 points_to_phred(i32 points, i32 variant_phred, const Scoring& scoring) {
    return points * variant_phred / (scoring.match + scoring.mismatch);
}
// Return the phred of all differences of a read at a window without gaps. Differences outside its segment cost no more
// than clipping them costs in points. Ambiguous bases count there, so that a run of N is no evidence for a placement.
HOST_DEVICE i32 ungapped_penalty(const UngappedAlignment& ungapped, const Window& window, const Qualities& qualities,
        i32 variant_phred, const Scoring& scoring) {
    i32 inside = 0, left = 0, right = 0;
    for (i32 i = ungapped.start; i < ungapped.end; i += 32) {
        u64 ambiguous_marks, marks = ungapped.mismatches(i, ambiguous_marks);
        while (marks) {
            i32 position = i + first_set_base(marks);
            u64 bit = 1ull << (62 - 2 * (position - i));
            marks ^= bit;
            i32 phred = maximum(phred_sum(qualities.at(position) + PHRED_ONE_OF_THREE, variant_phred), 1);
            if (position < window.start) left += phred;
            else if (position >= window.end) right += phred;
            else if (!(ambiguous_marks & bit)) inside += phred;
        }
    }
    const i32 max_phred = NEGLIGIBLE * 100;
    left = ungapped.start > 0 ? max_phred : left, right = ungapped.end < qualities.length ? max_phred : right;
    i32 left_clipped = window.start, right_clipped = qualities.length - window.end;
    i32 left_points = left_clipped ? left_clipped * scoring.match + scoring.left_clip(ungapped.reversed) : 0;
    i32 right_points = right_clipped ? right_clipped * scoring.match + scoring.right_clip(ungapped.reversed) : 0;
    left = minimum(left, points_to_phred(left_points, variant_phred, scoring));
    return inside + left + minimum(right, points_to_phred(right_points, variant_phred, scoring));
}
