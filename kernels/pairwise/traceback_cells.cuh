// The sources of the scores of all cells of a region, for the traceback.
#pragma once
#include "pairwise/wavefront_lanes.cuh"

const i32 TRACED_ROWS = 4;  // per lane; the cells of a lane in a column form a word
// Four bits per cell: the source of H, and whether E and F extend a gap.
enum Source { BEGINNING = 0, FROM_DIAGONAL = 1, FROM_E = 2, FROM_F = 3, E_EXTENDS = 4, F_EXTENDS = 8 };

static_assert(4 * TRACED_ROWS == 8 * sizeof(u16), "a lane's cells in a column are a word");

// Return the index in `cells` of the word of a lane in a step of a strip, in a region with `columns` columns.
template <class Lane> HOST_DEVICE i64 cell_word(i64 columns, i64 strip, i64 step, i32 lane) {
    return (strip * (columns + wavefront_width<Lane>()) + step) * wavefront_width<Lane>() + lane;
}
// Return the four bits of a cell (see Source).
template <class Lane> HOST_DEVICE i32 source_of(const u16* cells, i64 columns, i32 row, i32 column) {
    const i32 width = wavefront_width<Lane>();
    i32 lane = row / TRACED_ROWS % width;
    u16 word = cells[cell_word<Lane>(columns, row / (width * TRACED_ROWS), column + lane, lane)];
    return word >> 4 * (row % TRACED_ROWS) & 15;
}
