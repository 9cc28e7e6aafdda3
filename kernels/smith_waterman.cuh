// Local alignment with affine gaps (Smith and Waterman 1981, Gotoh 1982) inside a band, several pairs at once.
//
//   I(i, b) = max(H(i-1, b+1) - open, I(i-1, b+1)) - extend      a base of the read against none
//   D(i, b) = max(H(i, b-1) - open, D(i, b-1)) - extend          a base of the reference against none
//   H(i, b) = max(0, H(i-1, b) + score, I, D)                    H(-1, b) = clip_penalty: the read's end is reached
//
// The result is the largest H, plus clip_penalty in the read's last row.
#pragma once
#include "band.cuh"
#include "lanes.cuh"
#include "scoring.cuh"

const i32 NEVER = -4096;  // below any sum that still counts, and far from the end of 16 bits

template <class Lane, i32 WIDTH> struct BandedScores {
    Lane scores[WIDTH + 1], insertions[WIDTH + 1], text[WIDTH];  // text is a ring: column b of row i at (i + b) % WIDTH

    template <bool PLAIN> HOST_DEVICE Lane row(Lane query, i32 i, const Scoring& scoring, Lane best) {
        const Lane zero = Lane::all(0), open = Lane::all(scoring.gap_open), extend = Lane::all(scoring.gap_extend);
        const Lane match = Lane::all(scoring.match), mismatch = Lane::all(-scoring.mismatch);
        const Lane unclear = Lane::all(-AMBIGUOUS_PENALTY), never = Lane::all(NEVER), three = Lane::all(3);
        Lane deletion = never;
        for (i32 b = 0; b < WIDTH; ++b) {
            Lane letter = text[(i + b) & (WIDTH - 1)];
            Lane score = if_equal(query, letter, match, mismatch);
            if (!PLAIN) {
                score = if_above(larger(query, letter), three, unclear, score);
                score = if_equal(letter, Lane::all(OUTSIDE), never, score);
            }
            Lane insertion = larger(scores[b + 1] - open, insertions[b + 1]) - extend;
            Lane here = larger(larger(scores[b] + score, zero), larger(insertion, deletion));
            scores[b] = here;
            insertions[b] = insertion;
            deletion = larger(here - open, deletion) - extend;
            best = larger(best, here);
        }
        return best;
    }

    // bands: Lane::width of them; results: the lanes' scores.
    HOST_DEVICE void align(const Band* bands, const Scoring& scoring, i32* results) {
        i32 rows = 0;
        bool plain = true;
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            rows = maximum(rows, bands[lane].length);
            plain = plain && bands[lane].plain();
        }
        for (i32 b = 0; b <= WIDTH; ++b) {
            scores[b] = Lane::all(b < WIDTH ? scoring.clip_penalty : NEVER);
            insertions[b] = Lane::all(NEVER);
        }
        for (i32 b = 0; b + 1 < WIDTH; ++b)
            for (i32 lane = 0; lane < Lane::width; ++lane) text[b].set(lane, bands[lane].text_code(b));
        Lane best = Lane::all(0), query = best;
        for (i32 i = 0; i < rows; ++i) {
            bool last = false;
            for (i32 lane = 0; lane < Lane::width; ++lane) {
                text[(i + WIDTH - 1) & (WIDTH - 1)].set(lane, bands[lane].text_code(i + WIDTH - 1));
                query.set(lane, bands[lane].query_code(i));
                last = last || i + 1 == bands[lane].length;
            }
            best = plain ? row<true>(query, i, scoring, best) : row<false>(query, i, scoring, best);
            if (!last) continue;
            Lane reached = Lane::all(0);
            for (i32 b = 0; b < WIDTH; ++b) reached = larger(reached, scores[b]);
            for (i32 lane = 0; lane < Lane::width; ++lane)
                if (i + 1 == bands[lane].length)
                    results[lane] = maximum(best.get(lane), reached.get(lane) + scoring.clip_penalty);
        }
    }
};
