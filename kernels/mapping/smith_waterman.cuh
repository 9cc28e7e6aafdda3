// Local alignment with affine gaps (Smith and Waterman 1981, Gotoh 1982) inside a band, several pairs at once.
//
//   I(i, b) = max(H(i-1, b+1) - open, I(i-1, b+1)) - extend      a base of the read against none
//   D(i, b) = max(H(i, b-1) - open, D(i, b-1)) - extend          a base of the reference against none
//   H(i, b) = max(0, H(i-1, b) + score, I, D)
//
// with H(-1, b) = 0. A wide band has a second pair of I and D, whose gaps cost long_gap and nothing a base (Gotoh 1990).
// A score in the read's first row earns what clipping that end costs, and so does one in its last: an end is reached, by a
// pair of bases and not by a gap. The result is the largest H. What is kept of a row is H less the first base of a
// deletion, of which D in the same row and I in the next one take the larger with what they extend; I is kept with what
// its first base costs more than that of a deletion.
#pragma once
#include "mapping/band.cuh"
#include "common/simd_lanes.cuh"
#include "mapping/scoring.cuh"

const i32 NEVER = -4096;  // below any sum that still counts, and far from the end of 16 bits

template <class Lane, i32 WIDTH> struct BandedScores {
    static const bool LONG_GAPS = has_long_gaps(WIDTH);
    Lane rows[WIDTH + 1], insertions[WIDTH + 1];
    Lane long_insertions[LONG_GAPS ? WIDTH + 1 : 1];

    // PLAIN: neither does a letter need a look beside its base, nor do insertions and deletions differ in what they cost.
    // `base` is what every score of the row contains: what the kept H lacks, and the bonus of a row at an end of the read.
    // `floor` is what a differing letter scores: less than a mismatch costs where the read is ambiguous. `letters` are those
    // of the row's columns.
    template <bool PLAIN>
    HOST_DEVICE Lane row(Lane query, Lane base, Lane floor, const Lane* letters, const Scoring& scoring, Lane best) {
        const Lane match = base + Lane::all(scoring.match + 1), cheap = base + Lane::all(-AMBIGUOUS_PENALTY);
        const Lane open = Lane::all(-scoring.first_deleted()), extend = Lane::all(-scoring.deletion_extend);
        const Lane insert = PLAIN ? extend : Lane::all(-scoring.insertion_extend);
        const Lane dearer = Lane::all(scoring.first_deleted() - scoring.first_inserted());
        const Lane outside = Lane::all(~(OUTSIDE * CODE_SPACING));
        const Lane unclear = Lane::all(~(TEXT_UNCLEAR * CODE_SPACING));
        const Lane never = Lane::all(NEVER);
        const Lane lengthen = Lane::all(scoring.first_deleted() - scoring.long_gap);
        Lane deletion = never, long_deletion = never;
#pragma unroll(WIDTH <= 64 ? WIDTH : 4)
        for (i32 b = 0; b < WIDTH; ++b) {
            Lane score = add_larger(query ^ letters[b], match, floor);
            if (!PLAIN) {
                score = select_equal(letters[b], unclear, cheap, select_equal(letters[b], outside, never, score));
                deletion = select_equal(letters[b], outside, never, deletion);
                if (LONG_GAPS) long_deletion = select_equal(letters[b], outside, never, long_deletion);
            }
            Lane insertion = add_larger(insertions[b + 1], insert, rows[b + 1]);
            Lane gap = PLAIN ? insertion : insertion + dearer;
            if (LONG_GAPS) {
                Lane long_insertion = add_larger(rows[b + 1], lengthen, long_insertions[b + 1]);
                gap = larger(gap, larger(long_insertion, long_deletion));
                long_insertions[b] = long_insertion;
            }
            Lane reached = add_larger_or_zero(rows[b], score, gap), here = larger(reached, deletion);
            rows[b] = here + open;
            insertions[b] = insertion;
            // One deletion behind another never pays. So a CPU's next column need not wait for `here`; a GPU waits for
            // nothing, and counts instructions.
            deletion = add_larger(deletion, extend, WARP_WIDTH > 1 ? rows[b] : reached + open);
            if (LONG_GAPS) long_deletion = add_larger(rows[b], lengthen, long_deletion);
            best = larger(best, here);
        }
        return best;
    }
    // The next letters of all bands. Where they are clear, all bases, eight of each are held.
    struct Letters {
        const Band* bands;
        bool are_clear;
        Lane query, text;

        HOST_DEVICE Lane of_query(i32 row) {
            if (!are_clear) return each([&](i32 lane) { return bands[lane].query_code(row) * CODE_SPACING; });
            if (row % 8 == 0) query = each([&](i32 lane) { return bands[lane].eight_of_query(row); });
            return spaced_base(query, row % 8);
        }
        HOST_DEVICE Lane of_text(i32 column) {
            if (!are_clear) return each([&](i32 lane) { return bands[lane].text_code(column) * CODE_SPACING; });
            if (column % 8 == 0) text = each([&](i32 lane) { return bands[lane].eight_of_text(column); });
            return spaced_base(text, column % 8);
        }
        template <class Letter> HOST_DEVICE static Lane each(Letter letter) {
            Lane found = Lane::all(0);
            for (i32 lane = 0; lane < Lane::width; ++lane) found.set(lane, letter(lane));
            return found;
        }
    };
    HOST_DEVICE static void set_letter(Lane* ring, i32 column, Letters& letters) {
        ring[column % WIDTH] = ring[column % WIDTH + WIDTH] = letters.of_text(column) ^ Lane::all(-1);
    }

    // bands: Lane::width of them; results: the lanes' scores.
    HOST_DEVICE void align(const Band* bands, const Scoring& scoring, i32* results) {
        const i32 first_gap = scoring.first_deleted();
        // A ring written twice: columns 0.. of row i at i % WIDTH.. It holds the letters' complements, so that one exclusive
        // or with the query gives -1 where the letters are equal and less than -CODE_SPACING where not. Only it is read at places
        // that are not known when this is compiled: the other arrays of a narrow band are registers.
        Lane text[2 * WIDTH];
        i32 longest = 0, shortest = bands[0].length;
        bool clear = true, unclear = false;
        for (i32 lane = 0; lane < Lane::width; ++lane) {
            longest = maximum(longest, bands[lane].length);
            shortest = minimum(shortest, bands[lane].length);
            clear = clear && bands[lane].plain();
            unclear = unclear || bands[lane].read_unclear;
        }
#pragma unroll(WIDTH <= 64 ? WIDTH : 4)
        for (i32 b = 0; b < WIDTH; ++b) {
            rows[b] = Lane::all(-first_gap);
            insertions[b] = Lane::all(NEVER);
            if (LONG_GAPS) long_insertions[b] = Lane::all(NEVER);
        }
        rows[WIDTH] = insertions[WIDTH] = Lane::all(NEVER);
        if (LONG_GAPS) long_insertions[WIDTH] = Lane::all(NEVER);
        Letters letters = {bands, clear && !unclear, Lane::all(0), Lane::all(0)};
        for (i32 column = 0; column + 1 < WIDTH; ++column) set_letter(text, column, letters);
        const bool plain = clear && scoring.gaps_alike();
        Lane best = Lane::all(0), mismatch = Lane::all(-scoring.mismatch), differing = mismatch;
        for (i32 i = 0; i < longest; ++i) {
            set_letter(text, i + WIDTH - 1, letters);
            Lane query = letters.of_query(i), base = Lane::all(first_gap);
            if (i == 0)
                for (i32 lane = 0; lane < Lane::width; ++lane)
                    base.set(lane, first_gap + scoring.left_clip(bands[lane].reversed));
            if (unclear)
                differing = select_equal(query, Lane::all(READ_UNCLEAR * CODE_SPACING), Lane::all(-AMBIGUOUS_PENALTY), mismatch);
            if (i + 1 >= shortest)
                for (i32 lane = 0; lane < Lane::width; ++lane)
                    if (i + 1 == bands[lane].length)
                        base.set(lane, base.get(lane) + scoring.right_clip(bands[lane].reversed));
            best = plain ? row<true>(query, base, base + differing, text + i % WIDTH, scoring, best)
                         : row<false>(query, base, base + differing, text + i % WIDTH, scoring, best);
            if (i + 1 >= shortest)
                for (i32 lane = 0; lane < Lane::width; ++lane)
                    if (i + 1 == bands[lane].length) results[lane] = best.get(lane);
        }
    }
};
