// The horizontal bus of a region: a word a column, in which a strip's last row gives the strip below its H and its F. A word
// is written and read whole and bears its writer's mark, so that strips wait for nothing else: where the mark of the strip
// above is, all that it has to give is there.
#pragma once
#include "pairwise/wavefront_lanes.cuh"

// More strips are unreachable under way together, and H - F, which no gap's first letter exceeds, fits.
const i32 MARK_BITS = 21;

// What is known above a region and left of it; a sweep leaves what is known below it in row_h and row_f.
struct Borders {
    i32* row_h OF(columns);          // of the row above
    i32* row_f OF(columns);          // of the row below that one
    const i32* left_h OF(rows + 1);  // of the column before, from the row above on
    const i32* left_e OF(rows);
};

HOST_DEVICE u32 bus_mark(i32 strip) { return (u32)(strip + 1) & ((1u << MARK_BITS) - 1); }
// H - F, the mark, H.
HOST_DEVICE u64 bus_word(Border border, i32 strip) {
    u32 upper = (u32)(border.h - border.f) << MARK_BITS | bus_mark(strip);
    return (u64)upper << 32 | (u32)border.h;
}
HOST_DEVICE bool is_from(u64 word, i32 strip) {
    return ((u32)(word >> 32) & ((1u << MARK_BITS) - 1)) == bus_mark(strip);
}
HOST_DEVICE Border border_of(u64 word) { return Border{(i32)word, (i32)word - (i32)(word >> (32 + MARK_BITS))}; }
