// Where the scores of a cell come from: what a sweep keeps of a region for the way back.
#pragma once
#include "pairwise/wavefront_lanes.cuh"

const i32 TRACED_ROWS = 4;  // of a lane, whose cells in a column are a word

// Four bits a cell: where H comes from, and whether E and F are gaps that began before.
enum Source { BEGINNING = 0, FROM_DIAGONAL = 1, FROM_E = 2, FROM_F = 3, E_EXTENDS = 4, F_EXTENDS = 8 };

static_assert(4 * TRACED_ROWS == 8 * sizeof(u16), "a lane's cells in a column are a word");

// The place of the word of a lane in a step of a strip.
template <class Lane> HOST_DEVICE i64 cell_word(i64 columns, i64 strip, i64 step, i32 lane) {
    return (strip * (columns + wavefront_width<Lane>()) + step) * wavefront_width<Lane>() + lane;
}

// The four bits of a cell.
template <class Lane> HOST_DEVICE i32 source_of(const u16* cells, i64 columns, i32 row, i32 column) {
    const i32 width = wavefront_width<Lane>();
    i32 lane = row / TRACED_ROWS % width;
    u16 word = cells[cell_word<Lane>(columns, row / (width * TRACED_ROWS), column + lane, lane)];
    return word >> 4 * (row % TRACED_ROWS) & 15;
}
