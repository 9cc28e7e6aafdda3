// The horizontal bus of a region: one word per column, with which the last row of a strip passes H and F to the strip
// below. A word is read and written atomically; if it has the mark of the strip above, it is complete.
#pragma once
#include "pairwise/wavefront_lanes.cuh"

// Enough for all strips in flight; leaves enough bits for H - F, which is at most the cost of a gap's first letter.
const i32 MARK_BITS = 21;
// The known scores above a region and left of it; a sweep replaces row_h and row_f by the scores below the region.
struct Borders {
    i32* row_h OF(columns);          // H of the row above
    i32* row_f OF(columns);          // F of the row after that row
    const i32* left_h OF(rows + 1);  // H of the column before, starting at the row above
    const i32* left_e OF(rows);
};

HOST_DEVICE u32 bus_mark(i32 strip) { return (u32)(strip + 1) & ((1u << MARK_BITS) - 1); }  // modulo 2^MARK_BITS
// Return the bus word of a strip's lower border; bits from high to low: H - F, mark, H.
HOST_DEVICE u64 bus_word(Border border, i32 strip) {
    u32 upper = (u32)(border.h - border.f) << MARK_BITS | bus_mark(strip);
    return (u64)upper << 32 | (u32)border.h;
}
HOST_DEVICE bool is_from(u64 word, i32 strip) {  // the word has the strip's mark
    return ((u32)(word >> 32) & ((1u << MARK_BITS) - 1)) == bus_mark(strip);
}
// Return H and F of a bus word.
HOST_DEVICE Border border_of(u64 word) { return Border{(i32)word, (i32)word - (i32)(word >> (32 + MARK_BITS))}; }
