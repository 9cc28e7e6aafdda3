// The way back through a region of which every cell's source is known.
#include "pairwise/traceback_cells.cuh"

// In which of the three scores of a cell the way back is.
enum Score { IN_H = 0, IN_E = 1, IN_F = 2, AT_BEGINNING = 3 };
enum { INSERTED = 1, DELETED = 2, EQUAL = 7, DIFFERENT = 8 };  // as in BAM

const i32 SAME_LETTER = 16;  // behind the bits of a source

const i32 PATCH = 32;  // rows and columns whose sources a group looks up together

// Operations of a CIGAR, from its end on; all threads of a group know what one of them writes.
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
        if (group_lane() == 0) operations[count] = run;
        ++count;
        run = 0;
    }
};

// An item is the one way back. cell: its row and column and which score it is in, replaced by those with which it leaves
// the region, above or on the left, or AT_BEGINNING behind the first column of an alignment; cell[3]: operations, from its
// end on. letters: codes that are some, which equal themselves.
template <class Lane> HOST_DEVICE void walk(const u8* query, const u8* target, const u16* steps, i32* cell,
                                            u32* operations, i32 columns, i32 letters) {
    GROUP_ARRAY(u8, patch, PATCH * PATCH);
    i32 row = cell[0], column = cell[1], score = cell[2];
    Runs path = {operations, 0, 0};
    while (row >= 0 && column >= 0 && score != AT_BEGINNING) {
        i32 top = maximum(row - PATCH + 1, 0), left = maximum(column - PATCH + 1, 0);
        for (i32 i = group_lane(); i < PATCH * PATCH; i += GROUP_WIDTH) {
            i32 r = top + i / PATCH, c = left + i % PATCH;
            if (r > row || c > column) continue;
            bool equal = query[r] == target[c] && query[r] < letters;
            patch[i] = (u8)(source_of<Lane>(steps, columns, r, c) | (equal ? SAME_LETTER : 0));
        }
        group_sync();
        while (row >= top && column >= left && score != AT_BEGINNING) {
            i32 source = patch[(row - top) * PATCH + column - left], from = source & 3;
            if (score == IN_H && from == BEGINNING) score = AT_BEGINNING;
            else if (score == IN_H && from == FROM_DIAGONAL) {
                path.add(source & SAME_LETTER ? EQUAL : DIFFERENT);
                --row, --column;
            } else if (score == IN_E || (score == IN_H && from == FROM_E)) {
                path.add(DELETED);
                score = source & E_LONGER ? IN_E : IN_H;
                --column;
            } else {
                path.add(INSERTED);
                score = source & F_LONGER ? IN_F : IN_H;
                --row;
            }
        }
        group_sync();
    }
    path.end();
    if (group_lane()) return;
    cell[0] = row, cell[1] = column, cell[2] = score, cell[3] = path.count;
}

#define WALK(name, Lane)                                                                                       \
    KERNEL void name(i64 begin, i64 end, const u8* query, const u8* target, const u16* steps, i32* cell,       \
                     u32* operations, i32 columns, i32 letters) {                                              \
        FOR_EACH_GROUP(item, begin, end) walk<Lane>(query, target, steps, cell, operations, columns, letters); \
    }

WALK(walk_16_bits, Narrow)
WALK(walk_32_bits, Single)
