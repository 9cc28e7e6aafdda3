// Letters and scores of a substitution matrix in wavefronts.
#pragma once
#include "pairwise/substitution.cuh"
#include "pairwise/wavefront.cuh"

template <class Lane, i32 ROWS> struct WavefrontLetters<Substitution, Lane, ROWS> {
    typedef i32 Cell;
    typedef const Cell* ColumnLetters;
    static const bool HANDLES_NON_LETTERS = true;
    const i32* matrix;
    Lane rows[ROWS], offset;  // rows: offset of each letter's scores in the matrix

    HOST_DEVICE WavefrontLetters(const Substitution& scheme)
        : matrix(scheme.matrix), offset(Lane::all(scheme.first_gap())) {}
    HOST_DEVICE void set_row(i32 row, i32 lane, i32 code) { rows[row].set(lane, code * CODES); }
    HOST_DEVICE static Cell& cell(Cell* window, i32, i32 place) { return window[place]; }
    HOST_DEVICE static void put(Cell* window, i32, i32 place, i32 code, i32) { window[place] = code; }
    HOST_DEVICE static ColumnLetters columns(const Cell* window, i32, i32 place) {
        return window + place - first_lane<Lane>();
    }
    template <bool PLAIN> HOST_DEVICE Lane score(i32 row, ColumnLetters columns) const {
        Lane scores = offset;
        for (i32 lane = 0; lane < Lane::width; ++lane) scores.set(lane, matrix[rows[row].get(lane) + columns[-lane]]);
        return scores + offset;
    }
};
