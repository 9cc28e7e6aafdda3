// How likely a read belongs elsewhere, in phred, from integers alone.
//
// Every window has a penalty in phred: the probability that a read from there would look as it does. Where no gap is
// involved it sums the base qualities of the mismatches, each capped, since a difference may be a variant whatever the
// sequencer says. The error of the best place is the sum of the others' likelihoods over its own.
#pragma once
#include "ungapped.cuh"
#include "windows.cuh"

const i32 NO_QUALITY = 25;      // phred of a base whose quality is not told
const i32 PHRED_A_POINT = 6;    // of an alignment score: a mismatch costs 5 points and about 30 phred
const i32 NEGLIGIBLE = 100;     // phred beyond which a rival adds nothing

// 10^(-phred / 10) in units of 2^-24, phred in 0..72.
HOST_DEVICE u64 likelihood(i32 phred) {
    const u64 tenth[10] = {16777216, 13326602, 10585679, 8408493, 6679095, 5305384, 4214209, 3347459, 2658975, 2112092};
    u64 value = tenth[phred % 10];
    for (i32 i = phred / 10; i > 0; --i) value = (value + 5) / 10;
    return value;
}

// The largest phred in 0..60 of which the likelihood is at least part / whole.
HOST_DEVICE i32 phred_of(u64 part, u64 whole) {
    i32 phred = 0;
#pragma unroll 1
    while (phred < 60 && (part << 20) <= (likelihood(phred + 1) * (whole >> 4))) ++phred;
    return phred;
}

struct Qualities {
    const u8* first;  // null where the read has none
    i32 length;
    bool reversed;

    HOST_DEVICE i32 at(i32 i) const { return first ? first[reversed ? length - 1 - i : i] - 33 : NO_QUALITY; }
};

// Differences outside the window's segment count no more than clipping them costs in points.
HOST_DEVICE i32 ungapped_penalty(const Laid& laid, const Window& window, const Qualities& qualities, i32 cap, const Scoring& scoring) {
    i32 inside = 0, left = 0, right = 0;
    for (i32 i = laid.begin; i < laid.end; i += 32) {
        u64 unclear, marks = laid.differing(i, unclear);
        for (marks &= ~unclear; marks;) {
            i32 place = i + first_marked(marks);
            marks ^= 1ull << (62 - 2 * (place - i));
            i32 phred = clamp(qualities.at(place), 2, cap);
            if (place < window.begin) left += phred;
            else if (place >= window.end) right += phred;
            else inside += phred;
        }
    }
    const i32 most = NEGLIGIBLE * 100;
    left = laid.begin > 0 ? most : left, right = laid.end < qualities.length ? most : right;
    i32 left_points = window.begin ? window.begin * scoring.match + scoring.clip_penalty : 0;
    i32 right_points = window.end < qualities.length ? (qualities.length - window.end) * scoring.match + scoring.clip_penalty : 0;
    return inside + minimum(left, left_points * PHRED_A_POINT) + minimum(right, right_points * PHRED_A_POINT);
}
