// Trace an alignment back through a region whose cells have stored sources.
#include "pairwise/recurrence.cuh"
#include "pairwise/traceback_cells.cuh"

// The score of a cell that the traceback is in.
enum CellState { STATE_H = 0, STATE_E = 1, STATE_F = 2, AT_START = 3 };

const i32 SAME_LETTER = 16;  // above the bits of a source
const i32 PATCH = 32;        // rows and columns whose sources a warp loads together
// CIGAR operations from the end on; all threads of a warp hold them, one thread writes them.
struct Runs {
    u32* operations;
    i32 count;
    u32 run;
    HOST_DEVICE void add(u32 operation) {
        if (run && (run & 15) == operation) {
            run += 1 << 4;
            return;
        }
        end();
        run = 1 << 4 | operation;
    }
    HOST_DEVICE void end() {
        if (!run) return;
        if (warp_lane() == 0) operations[count] = run;
        ++count;
        run = 0;
    }
};

// The current cell. The traceback ends above or left of the region, or AT_START of the alignment.
struct Position {
    i32 row, column, state;
    i32 operations;  // number written so far
};

// Trace back from the position through the region; write the operations, from the end on, and the position where it
// ends. cells: sources of all scores; letters: codes below it are letters, which equal themselves.
template <class Lane> HOST_DEVICE void walk(const u8* query, const u8* target, const u16* cells, Position* position,
        u32* operations, i32 columns, i32 letters) {
    WARP_ARRAY(u8, patch, PATCH * PATCH);
    i32 row = position->row, column = position->column, state = position->state;
    Runs path = {operations, 0, 0};
    while (row >= 0 && column >= 0 && state != AT_START) {
        i32 top = maximum(row - PATCH + 1, 0), left = maximum(column - PATCH + 1, 0);
        for (i32 i = warp_lane(); i < PATCH * PATCH; i += WARP_WIDTH) {
            i32 r = top + i / PATCH, c = left + i % PATCH;
            if (r > row || c > column) continue;
            bool equal = query[r] == target[c] && query[r] < letters;
            patch[i] = (u8)(source_of<Lane>(cells, columns, r, c) | (equal ? SAME_LETTER : 0));
        }
        warp_sync();
        while (row >= top && column >= left && state != AT_START) {
            i32 source = patch[(row - top) * PATCH + column - left], from = source & 3;
            if (state == STATE_H && from == BEGINNING) state = AT_START;
            else if (state == STATE_H && from == FROM_DIAGONAL) {
                path.add(source & SAME_LETTER ? EQUAL : DIFFERENT);
                --row, --column;
            } else if (state == STATE_E || (state == STATE_H && from == FROM_E)) {
                path.add(DELETED);
                state = source & E_EXTENDS ? STATE_E : STATE_H;
                --column;
            } else {
                path.add(INSERTED);
                state = source & F_EXTENDS ? STATE_F : STATE_H;
                --row;
            }
        }
        warp_sync();
    }
    path.end();
    if (warp_lane()) return;
    *position = Position{row, column, state, path.count};
}

// One item. operations: from the end of the alignment on.
#define WALK(name, Lane)                                                                                         \
    KERNEL void name(WarpItems items, const u8* query OF(rows), const u8* target OF(columns),                    \
            const u16* cells OF(any), Position* position OF(1), u32* operations OF(rows + columns), i32 columns, \
            i32 letters) {                                                                                       \
        FOR_EACH(item, items) walk<Lane>(query, target, cells, position, operations, columns, letters);          \
    }

WALK(walk_16_bits, Lanes16)
WALK(walk_32_bits, Lane32)
