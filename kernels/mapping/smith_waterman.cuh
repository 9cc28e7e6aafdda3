// Scores of banded local alignments with affine gaps (Smith and Waterman 1981, Gotoh 1982), several pairs at once.
//
//   I(i, b) = max(H(i-1, b+1) - open, I(i-1, b+1)) - extend      insertion: a base of the read
//   D(i, b) = max(H(i, b-1) - open, D(i, b-1)) - extend          deletion: a base of the reference
//   H(i, b) = max(0, H(i-1, b) + score, I, D)
//
// with H(-1, b) = 0. A wide band has a second pair of I and D for long gaps, which cost long_gap and nothing per base
// (Gotoh 1990). A pair of bases in the first or the last row of the read reaches an end of the read and earns the
// clipping penalty of that end. The result is the largest H. The array `rows` stores H minus the cost of the first base
// of a deletion, since both D in the same row and I in the next row need it; `insertions` stores I plus the difference
// between the costs of the first base of an insertion and of a deletion.
#pragma once
#include "mapping/band.cuh"
#include "common/simd_lanes.cuh"
#include "mapping/scoring.cuh"

const i32 NEVER = -4096;  // less than any score that matters, and far from the limit of 16 bits
// The scores of Lane::width banded alignments at once, in bands of WIDTH diagonals.
template <class Lane, i32 WIDTH> struct BandedScores {
    static const bool LONG_GAPS = has_long_gaps(WIDTH);
    Lane rows[WIDTH + 1], insertions[WIDTH + 1];
    Lane long_insertions[LONG_GAPS ? WIDTH + 1 : 1];
    // Compute one row. PLAIN: no reference letter is ambiguous or outside the contig, and insertions and deletions have
    // equal costs. base: added to every score of the row: what the stored H lacks, and the bonus of an end of the read.
    // floor: base plus the score of a mismatch, which costs less if the read's base is ambiguous. letters: by column.
    template <bool PLAIN>
    HOST_DEVICE Lane row(Lane query, Lane base, Lane floor, const Lane* letters, const Scoring& scoring, Lane best) {
        const Lane match = base + Lane::all(scoring.match + 1), ambiguous_score = base + Lane::all(-AMBIGUOUS_PENALTY);
        const Lane open = Lane::all(-scoring.first_deleted()), extend = Lane::all(-scoring.deletion_extend);
        const Lane insert = PLAIN ? extend : Lane::all(-scoring.insertion_extend);
        const Lane extra_insertion_cost = Lane::all(scoring.first_deleted() - scoring.first_inserted());
        const Lane outside = Lane::all(~(OUTSIDE * CODE_SPACING));
        const Lane ambiguous = Lane::all(~(REFERENCE_AMBIGUOUS * CODE_SPACING));
        const Lane never = Lane::all(NEVER);
        const Lane lengthen = Lane::all(scoring.first_deleted() - scoring.long_gap);
        Lane deletion = never, long_deletion = never;
#pragma unroll(WIDTH <= 64 ? WIDTH : 4)
        for (i32 b = 0; b < WIDTH; ++b) {
            Lane score = add_max(query ^ letters[b], match, floor);
            if (!PLAIN) {
                score = select_equal(
                        letters[b], ambiguous, ambiguous_score, select_equal(letters[b], outside, never, score));
                deletion = select_equal(letters[b], outside, never, deletion);
                if (LONG_GAPS) long_deletion = select_equal(letters[b], outside, never, long_deletion);
            }
            Lane insertion = add_max(insertions[b + 1], insert, rows[b + 1]);
            Lane gap = PLAIN ? insertion : insertion + extra_insertion_cost;
            if (LONG_GAPS) {
                Lane long_insertion = add_max(rows[b + 1], lengthen, long_insertions[b + 1]);
                gap = max(gap, max(long_insertion, long_deletion));
                long_insertions[b] = long_insertion;
            }
            Lane reached = add_max_or_zero(rows[b], score, gap), here = max(reached, deletion);
            rows[b] = here + open;
            insertions[b] = insertion;
            // A deletion right after a deletion never pays, so the next column need not depend on `here`: that shortens
            // the CPU's dependency chain. A GPU hides latency, and saves the instruction.
            deletion = add_max(deletion, extend, WARP_WIDTH > 1 ? rows[b] : reached + open);
            if (LONG_GAPS) long_deletion = add_max(rows[b], lengthen, long_deletion);
            best = max(best, here);
        }
        return best;
    }
    // Iterator over the letters of all bands. If all letters are plain bases, eight of each band are fetched at once.
    struct Letters {
        const Band* bands;
        bool are_bases;
        Lane query, reference;
        HOST_DEVICE Lane query_letter(i32 row) {
            if (!are_bases) return each([&](i32 lane) { return bands[lane].query_code(row) * CODE_SPACING; });
            if (row % 8 == 0) query = each([&](i32 lane) { return bands[lane].eight_query_bases(row); });
            return spaced_base(query, row % 8);
        }
        HOST_DEVICE Lane reference_letter(i32 column) {
            if (!are_bases) return each([&](i32 lane) { return bands[lane].reference_code(column) * CODE_SPACING; });
            if (column % 8 == 0) reference = each([&](i32 lane) { return bands[lane].eight_reference_bases(column); });
            return spaced_base(reference, column % 8);
        }
        template <class Letter> HOST_DEVICE static Lane each(Letter letter) {
            Lane found = Lane::all(0);
            for (i32 lane = 0; lane < Lane::width; ++lane) found.set(lane, letter(lane));
            return found;
        }
    };
    HOST_DEVICE static void set_letter(Lane* ring, i32 column, Letters& letters) {
        ring[column % WIDTH] = ring[column % WIDTH + WIDTH] = letters.reference_letter(column) ^ Lane::all(-1);
    }
    // Store the scores of Lane::width bands in `results`.
    HOST_DEVICE void align(const Band* bands, const Scoring& scoring, i32* results) {
        const i32 first_gap = scoring.first_deleted();
        // A ring buffer stored twice: the columns of row i start at i % WIDTH. It holds the complements of the letters,
        // so that an exclusive or with the query gives -1 for equal letters and less than -CODE_SPACING for others. It
        // is the only array with run-time indices: the other arrays of a narrow band are in registers.
        Lane reference[2 * WIDTH];
        i32 longest = 0, shortest = bands[0].length;
        bool clear = true, ambiguous = false;
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            longest = maximum(longest, bands[lane].length);
            shortest = minimum(shortest, bands[lane].length);
            clear = clear && bands[lane].plain();
            ambiguous = ambiguous || bands[lane].has_ambiguous_query;
        }
#pragma unroll(WIDTH <= 64 ? WIDTH : 4)
        for (i32 b = 0; b < WIDTH; ++b) {
            rows[b] = Lane::all(-first_gap);
            insertions[b] = Lane::all(NEVER);
            if (LONG_GAPS) long_insertions[b] = Lane::all(NEVER);
        }
        rows[WIDTH] = insertions[WIDTH] = Lane::all(NEVER);
        if (LONG_GAPS) long_insertions[WIDTH] = Lane::all(NEVER);
        Letters letters = {bands, clear && !ambiguous, Lane::all(0), Lane::all(0)};
        for (i32 column = 0; column + 1 < WIDTH; ++column) set_letter(reference, column, letters);
        const bool plain = clear && scoring.gaps_alike();
        Lane best = Lane::all(0), mismatch = Lane::all(-scoring.mismatch), mismatch_score = mismatch;
        for (i32 i = 0; i < longest; ++i) {
            set_letter(reference, i + WIDTH - 1, letters);
            Lane query = letters.query_letter(i), base = Lane::all(first_gap);
            if (i == 0)
                for (i32 lane = 0; lane < Lane::width; ++lane)
                    base.set(lane, first_gap + scoring.left_clip(bands[lane].reversed));
            if (ambiguous)
                mismatch_score = select_equal(
                        query, Lane::all(QUERY_AMBIGUOUS * CODE_SPACING), Lane::all(-AMBIGUOUS_PENALTY), mismatch);
            if (i + 1 >= shortest)
                for (i32 lane = 0; lane < Lane::width; ++lane)
                    if (i + 1 == bands[lane].length)
                        base.set(lane, base.get(lane) + scoring.right_clip(bands[lane].reversed));
            best = plain ? row<true>(query, base, base + mismatch_score, reference + i % WIDTH, scoring, best)
                         : row<false>(query, base, base + mismatch_score, reference + i % WIDTH, scoring, best);
            if (i + 1 >= shortest)
                for (i32 lane = 0; lane < Lane::width; ++lane)
                    if (i + 1 == bands[lane].length) results[lane] = best.get(lane);
        }
    }
};
