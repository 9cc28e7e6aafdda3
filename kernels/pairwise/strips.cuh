// A strip of rows of the matrix (recurrence.cuh), swept along the columns of the target, Lane::width pairs at once.
//
//   step         0    1    2    3  ...        In a step, row r is r columns after row 0, so that a step is an
//   row 0      c      c+1  c+2  c+3           anti-diagonal: its rows are independent, and the first step that
//   row 1      c-1    c    c+1  c+2           reaches a score contains the first cell with that score.
//   row 2      c-2    c-1  c    c+1
//
// A strip reads H and F of the row above from the border of the columns, and replaces them by H and F of its last row.
// H is stored as H - open - extend, the value that E and F compare with their extension.
#pragma once
#include "pairwise/recurrence.cuh"
#include "common/simd_lanes.cuh"

const i32 ROWS = 8;
// The letters of the target (match codes) and the border, one word each per column, interleaved over a warp's threads.
template <class Lane> struct StripColumns {
    Lane* words;
    // A strip also visits columns before the first and after the last column.
    static const i32 BEFORE = ROWS, AFTER = 2 * ROWS;
    HOST_DEVICE static i64 size(i64 columns) { return 3 * (BEFORE + columns + AFTER + ROWS) * WARP_WIDTH; }
    HOST_DEVICE Lane& at(i32 column, i32 plane) const {
        return words[(3 * (i64)(column + BEFORE) + plane) * WARP_WIDTH];
    }
    HOST_DEVICE Lane& letter(i32 column) const { return at(column, 0); }
    HOST_DEVICE Lane& score(i32 column) const { return at(column, 1); }
    HOST_DEVICE Lane& insertion(i32 column) const { return at(column, 2); }
};

// Four bits per cell encode the sources of its scores; the cells of a step are adjacent, row 0 lowest.
enum DirectionBits { NO_DIAGONAL = 8, NO_DELETION = 4, EXTENDS_DELETION = 2, EXTENDS_INSERTION = 1 };
// The direction bits of the cells of a strip, by step.
template <class Lane> struct Directions {
    static const i32 CELLS = 2 * sizeof(typename Lane::Item), WORDS = ROWS / CELLS;
    Lane* words;  // of a strip, interleaved as in StripColumns
    HOST_DEVICE static i64 size(i64 strips, i64 steps) { return strips * steps * WORDS * WARP_WIDTH; }
    HOST_DEVICE Lane& at(i32 step, i32 word) const { return words[((i64)step * WORDS + word) * WARP_WIDTH]; }
    HOST_DEVICE u32 get(i32 lane, i32 row, i32 step) const {
        return (u32)at(step, row / CELLS).get(lane) >> 4 * (row % CELLS) & 15;
    }
};

// The letters of a scheme in the lanes of a strip, and their scores.
template <class Scheme, class Lane> struct StripLetters;

template <class Scheme, class Lane> struct LaneScheme {
    StripLetters<Scheme, Lane> letters;  // their scores are added to a stored H
    Lane extend, first_gap;              // negative
    Lane unreachable;                    // of cells outside the matrix
    Lane lowest;                         // lower limit of H: 0 in a local alignment
    HOST_DEVICE static LaneScheme of(const Scheme& scheme, Mode mode, i32 unreachable) {
        i32 offset = scheme.first_gap();
        return LaneScheme{StripLetters<Scheme, Lane>::of(scheme, offset), Lane::all(-scheme.gap_extend),
                Lane::all(-offset), Lane::all(unreachable), Lane::all(mode == LOCAL ? 0 : unreachable)};
    }
};

// The result of a sweep: the best cell of a local alignment; the last row, if no query or some end in it; directions.
enum Purpose { BEST_CELL, LAST_ROW, LAST_ROW_ENDING, DIRECTIONS };

template <class Lane, Purpose PURPOSE> struct Strip {
    Lane rows[ROWS], deletions[ROWS], insertions[ROWS], diagonals[ROWS], query[ROWS], last_letters[ROWS];
    // The best score, the first step that reached it, and the rows in that step.
    Lane best, best_step, best_rows[ROWS];
    Lane ends[ROWS];  // lanes for which a row is the border: the end of their query or of the strip
    // first: the column in which row 0 starts.
    template <class Scheme>
    HOST_DEVICE void start(StripColumns<Lane> columns, i32 first, const LaneScheme<Scheme, Lane>& lane_scheme) {
        UNROLL for (i32 row = 0; row < ROWS; ++row) {
            rows[row] = deletions[row] = insertions[row] = diagonals[row] = lane_scheme.unreachable;
            last_letters[row] = Lane::all(lane_scheme.letters.of_target(lane_scheme.letters.NO_TARGET));
        }
        diagonals[0] = columns.score(first - 1);
        best_step = Lane::all(-1);
    }
    // Make ROWS steps; row 0 visits the columns from `first` on. step: index of the first step.
    template <class Scheme> HOST_DEVICE void advance(StripColumns<Lane> columns, i32 first, i32 step,
            Directions<Lane> directions, const LaneScheme<Scheme, Lane>& lane_scheme) {
        Lane letters[ROWS], scores_above[ROWS], insertions_above[ROWS];
        UNROLL for (i32 i = 0; i < ROWS; ++i) {
            letters[i] = columns.letter(first + i);
            scores_above[i] = columns.score(first + i);
            insertions_above[i] = columns.insertion(first + i);
        }
        UNROLL for (i32 i = 0; i < ROWS; ++i) {
            Lane bits[Directions<Lane>::WORDS] = {}, highest = rows[0];
            UNROLL for (i32 row = ROWS - 1; row >= 0; --row) {
                Lane above = row ? rows[row ? row - 1 : 0] : scores_above[i];
                Lane gap_above = row ? insertions[row ? row - 1 : 0] : insertions_above[i];
                Lane letter = i >= row ? letters[i >= row ? i - row : 0] : last_letters[i >= row ? 0 : ROWS + i - row];
                Lane deletion = add_max(deletions[row], lane_scheme.extend, rows[row]);
                Lane insertion = add_max(gap_above, lane_scheme.extend, above);
                Lane diagonal = diagonals[row] + lane_scheme.letters.score(query[row], letter), here;
                if constexpr (PURPOSE == BEST_CELL) here = max3_or_zero(diagonal, deletion, insertion);
                else here = max3(diagonal, deletion, insertion);
                if constexpr (PURPOSE == DIRECTIONS) {
                    here = max(here, lane_scheme.lowest);
                    Lane& word = bits[row / Directions<Lane>::CELLS];
                    word = shift_in_less(word, diagonal, here);
                    word = shift_in_less(word, deletion, insertion);
                    word = shift_in_less(word, rows[row], deletion);
                    word = shift_in_less(word, above, insertion);
                }
                diagonals[row] = above;
                deletions[row] = deletion;
                insertions[row] = insertion;
                rows[row] = here + lane_scheme.first_gap;
                if constexpr (PURPOSE == BEST_CELL) highest = row == ROWS - 1 ? rows[row] : max(highest, rows[row]);
            }
            if constexpr (PURPOSE == BEST_CELL) update_best(highest, step + i);
            if constexpr (PURPOSE == DIRECTIONS) {
                UNROLL for (i32 word = 0; word < Directions<Lane>::WORDS; ++word)
                    directions.at(step + i, word) = bits[word];
            }
            store_border(columns, first + i);
        }
        UNROLL for (i32 i = 0; i < ROWS; ++i)
            last_letters[i] = letters[i];
    }
    HOST_DEVICE void update_best(Lane highest, i32 step) {
        Lane better = less_mask(best, highest);
        if (!any(better)) return;
        best = max(best, highest);
        best_step = select(better, Lane::all(step), best_step);
        UNROLL for (i32 row = 0; row < ROWS; ++row)
            best_rows[row] = select(better, rows[row], best_rows[row]);
    }
    // column: of row 0.
    HOST_DEVICE void store_border(StripColumns<Lane> columns, i32 column) {
        const i32 last = ROWS - 1;
        columns.insertion(column - last) = insertions[last];
        if constexpr (PURPOSE == LAST_ROW_ENDING) {
            UNROLL for (i32 row = 0; row < ROWS; ++row) {
                Lane& border = columns.score(column - row);
                border = select(ends[row], rows[row], border);
            }
        } else columns.score(column - last) = rows[last];
    }
};
