// Local alignment with affine gaps (Smith and Waterman 1981, Gotoh 1982) inside a band, several pairs at once.
//
//   I(i, b) = max(H(i-1, b+1) - open, I(i-1, b+1)) - extend      a base of the read against none
//   D(i, b) = max(H(i, b-1) - open, D(i, b-1)) - extend          a base of the reference against none
//   H(i, b) = max(0, H(i-1, b) + score, I, D)
//
// with H(-1, b) = 0. A wide band has a second pair of I and D, whose gaps cost long_gap and nothing a base (Gotoh 1990).
// A score in the read's first row earns clip_penalty, and so does one in its last: an end is reached, by a pair of bases
// and not by a gap. The result is the largest H. What is kept of a row is H - open - extend, of which D in the same row
// and I in the next one take the larger with what they extend.
#pragma once
#include "search/band.cuh"
#include "common/lanes.cuh"
#include "search/scoring.cuh"

const i32 NEVER = -4096;  // below any sum that still counts, and far from the end of 16 bits

template <class Lane, i32 WIDTH> struct BandedScores {
    static const bool LONG_GAPS = has_long_gaps(WIDTH);
    Lane rows[WIDTH + 1], insertions[WIDTH + 1];
    Lane long_insertions[LONG_GAPS ? WIDTH + 1 : 1];

    // `base` is what every score of the row contains: what the kept H lacks, and the bonus of a row at an end of the read.
    // `floor` is what a differing letter scores: less than a mismatch costs where the read is ambiguous. `letters` are those
    // of the row's columns.
    template <bool PLAIN>
    HOST_DEVICE Lane row(Lane query, Lane base, Lane floor, const Lane* letters, const Scoring& scoring, Lane best) {
        const Lane match = base + Lane::all(scoring.match + 1), cheap = base + Lane::all(-AMBIGUOUS_PENALTY);
        const Lane open = Lane::all(-scoring.gap_open - scoring.gap_extend);
        const Lane extend = Lane::all(-scoring.gap_extend), outside = Lane::all(~(OUTSIDE * SPACING));
        const Lane unclear = Lane::all(~(TEXT_UNCLEAR * SPACING));
        const Lane never = Lane::all(NEVER);
        const Lane lengthen = Lane::all(scoring.gap_open + scoring.gap_extend - scoring.long_gap);
        Lane deletion = never, long_deletion = never;
#pragma unroll(WIDTH <= 64 ? WIDTH : 4)
        for (i32 b = 0; b < WIDTH; ++b) {
            Lane score = add_larger(query ^ letters[b], match, floor);
            if (!PLAIN) {
                score = if_equal(letters[b], unclear, cheap, if_equal(letters[b], outside, never, score));
                deletion = if_equal(letters[b], outside, never, deletion);
                if (LONG_GAPS) long_deletion = if_equal(letters[b], outside, never, long_deletion);
            }
            Lane insertion = add_larger(insertions[b + 1], extend, rows[b + 1]);
            Lane gap = larger(insertion, deletion);
            if (LONG_GAPS) {
                Lane long_insertion = add_larger(rows[b + 1], lengthen, long_insertions[b + 1]);
                gap = larger(gap, larger(long_insertion, long_deletion));
                long_insertions[b] = long_insertion;
            }
            Lane here = add_larger_or_zero(rows[b], score, gap);
            rows[b] = here + open;
            insertions[b] = insertion;
            deletion = add_larger(deletion, extend, rows[b]);
            if (LONG_GAPS) long_deletion = add_larger(rows[b], lengthen, long_deletion);
            best = larger(best, here);
        }
        return best;
    }
    HOST_DEVICE static void set_letter(Lane* text, const Band* bands, i32 column) {
        Lane letter = Lane::all(0);
        for (i32 lane = 0; lane < Lane::width; ++lane) letter.set(lane, ~(bands[lane].text_code(column) * SPACING));
        text[column % WIDTH] = text[column % WIDTH + WIDTH] = letter;
    }

    // bands: Lane::width of them; results: the lanes' scores.
    HOST_DEVICE void align(const Band* bands, const Scoring& scoring, i32* results) {
        const i32 first_gap = scoring.gap_open + scoring.gap_extend;
        // A ring written twice: columns 0.. of row i at i % WIDTH.. It holds the letters' complements, so that one exclusive
        // or with the query gives -1 where the letters are equal and less than -SPACING where not. Only it is read at places
        // that are not known when this is compiled: the other arrays of a narrow band are registers.
        Lane text[2 * WIDTH];
        i32 longest = 0;
        bool plain = true;
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            longest = maximum(longest, bands[lane].length);
            plain = plain && bands[lane].plain();
        }
#pragma unroll(WIDTH <= 64 ? WIDTH : 4)
        for (i32 b = 0; b < WIDTH; ++b) {
            rows[b] = Lane::all(-first_gap);
            insertions[b] = Lane::all(NEVER);
            if (LONG_GAPS) long_insertions[b] = Lane::all(NEVER);
        }
        rows[WIDTH] = insertions[WIDTH] = Lane::all(NEVER);
        if (LONG_GAPS) long_insertions[WIDTH] = Lane::all(NEVER);
        for (i32 column = 0; column + 1 < WIDTH; ++column) set_letter(text, bands, column);
        Lane best = Lane::all(0), query = best, base = best, floor = best;
        for (i32 i = 0; i < longest; ++i) {
            set_letter(text, bands, i + WIDTH - 1);
            for (i32 lane = 0; lane < Lane::width; ++lane) {
                i32 code = bands[lane].query_code(i), ends = (i == 0) + (i + 1 == bands[lane].length);
                i32 contained = first_gap + ends * scoring.clip_penalty;
                query.set(lane, code * SPACING);
                base.set(lane, contained);
                floor.set(lane, contained - (code == READ_UNCLEAR ? AMBIGUOUS_PENALTY : scoring.mismatch));
            }
            const Lane* letters = text + i % WIDTH;
            best = plain ? row<true>(query, base, floor, letters, scoring, best)
                         : row<false>(query, base, floor, letters, scoring, best);
            for (i32 lane = 0; lane < Lane::width; ++lane)
                if (i + 1 == bands[lane].length) results[lane] = best.get(lane);
        }
    }
};
