// Letters and scores of the schemes in wavefronts.
#pragma once
#include "pairwise/schemes.cuh"
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
    HOST_DEVICE static Cell& cell(Cell* window, i32, i32 index) { return window[index]; }
    HOST_DEVICE static void put(Cell* window, i32, i32 index, i32 code, i32) { window[index] = code; }
    HOST_DEVICE static ColumnLetters columns(const Cell* window, i32, i32 index) {
        return window + index - first_lane<Lane>();
    }
    template <bool PLAIN> HOST_DEVICE Lane score(i32 row, ColumnLetters columns) const {
        Lane scores = offset;
        for (i32 lane = 0; lane < Lane::width; ++lane) scores.set(lane, matrix[rows[row].get(lane) + columns[-lane]]);
        return scores + offset;
    }
};

template <class Lane, i32 ROWS> struct WavefrontLetters<Identity, Lane, ROWS> {
    typedef i32 Cell;
    typedef Lane ColumnLetters;
    static const bool HANDLES_NON_LETTERS = true;  // also without PLAIN
    Lane rows[ROWS], matching, differing;
    // Scores include the cost of a gap's first letter, which the stored H lacks.
    HOST_DEVICE WavefrontLetters(const Identity& scheme)
        : matching(Lane::all(scheme.first_gap() + scheme.highest)),
          differing(Lane::all(scheme.first_gap() + scheme.lowest)) {}
    HOST_DEVICE void set_row(i32 row, i32 lane, i32 code) { rows[row].set(lane, code < NOT_NUCLEOTIDE ? code : -1); }
    HOST_DEVICE static Cell& cell(Cell* window, i32, i32 index) { return window[index]; }
    // Store the cell of a column with letter `code`, after a column with letter `before`.
    HOST_DEVICE static void put(Cell* window, i32, i32 index, i32 code, i32) {
        window[index] = code < NOT_NUCLEOTIDE ? code : -2;
    }
    // The columns of this thread's lanes, if the first lane of the wavefront is at `index`.
    HOST_DEVICE static ColumnLetters columns(const Cell* window, i32, i32 index) {
        return Lane::all(window[index - first_lane<Lane>()]);
    }
    // PLAIN: all columns are letters.
    template <bool PLAIN> HOST_DEVICE Lane score(i32 row, ColumnLetters columns) const {
        return select_equal(rows[row], columns, matching, differing);
    }
};

#ifdef __CUDACC__
// The scores of a row with the four letters are the bytes of a word, selected by the letters of two columns.
template <i32 ROWS> struct WavefrontLetters<Identity, Lanes16, ROWS> {
    typedef u32 Cell;
    typedef u32 ColumnLetters;
    static const bool HANDLES_NON_LETTERS = false;
    u32 low[ROWS], high[ROWS];
    i32 matching, differing;
    HOST_DEVICE WavefrontLetters(const Identity& scheme)
        : matching(scheme.first_gap() + scheme.highest), differing(scheme.first_gap() + scheme.lowest) {}
    HOST_DEVICE void set_row(i32 row, i32 lane, i32 code) {
        u32 scores = (u32)(differing & 0xFF) * 0x01010101u;
        if (code < NOT_NUCLEOTIDE) scores ^= (u32)((matching ^ differing) & 0xFF) << 8 * code;
        if (lane) high[row] = scores;
        else low[row] = scores;
    }
    HOST_DEVICE static Cell& cell(Cell* window, i32, i32 index) { return window[index]; }
    // Four byte selectors, the second of each lane for the sign; above them, flags of lanes without a letter.
    HOST_DEVICE static void put(Cell* window, i32, i32 index, i32 code, i32 before) {
        u32 first = code & 3, second = 4 | (before & 3);
        window[index] = first | (first | 8) << 4 | second << 8 | (second | 8) << 12 |
                (u32)(code >= NOT_NUCLEOTIDE) << 16 | (u32)(before >= NOT_NUCLEOTIDE) << 17;
    }
    HOST_DEVICE static ColumnLetters columns(const Cell* window, i32, i32 index) {
        return window[index - first_lane<Lanes16>()];
    }
    template <bool PLAIN> HOST_DEVICE Lanes16 score(i32 row, ColumnLetters columns) const {
        u32 scores = permute_bytes(low[row], high[row], columns);
        if (PLAIN) return Lanes16{scores};
        u32 without = (columns >> 16 & 1) * 0xFFFFu | (columns >> 17 & 1) * 0xFFFF0000u;
        return Lanes16{(scores & ~without) | (Lanes16::all(differing).value & without)};
    }
};
#else
template <i32 ROWS> struct WavefrontLetters<Identity, Lanes16, ROWS> {
    typedef i16 Cell;
    typedef Lanes16 ColumnLetters;
    static const bool HANDLES_NON_LETTERS = true;
    Lanes16 rows[ROWS], matching, differing;
    HOST_DEVICE WavefrontLetters(const Identity& scheme)
        : matching(Lanes16::all(scheme.first_gap() + scheme.highest)),
          differing(Lanes16::all(scheme.first_gap() + scheme.lowest)) {}
    HOST_DEVICE void set_row(i32 row, i32 lane, i32 code) { rows[row].set(lane, code < NOT_NUCLEOTIDE ? code : -1); }
    // Reversed, so that the columns of consecutive lanes are adjacent.
    HOST_DEVICE static Cell& cell(Cell* window, i32 size, i32 index) { return window[size - 1 - index]; }
    HOST_DEVICE static void put(Cell* window, i32 size, i32 index, i32 code, i32) {
        cell(window, size, index) = (i16)(code < NOT_NUCLEOTIDE ? code : -2);
    }
    HOST_DEVICE static ColumnLetters columns(const Cell* window, i32 size, i32 index) {
        Lanes16 columns;
        __builtin_memcpy(&columns.value, window + size - 1 - index, sizeof columns.value);
        return columns;
    }
    template <bool PLAIN> HOST_DEVICE Lanes16 score(i32 row, ColumnLetters columns) const {
        return select_equal(rows[row], columns, matching, differing);
    }
};
#endif
