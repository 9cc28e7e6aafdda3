// Lines: what is told of a read, a place each. The first one of a read is its primary one, mapped or not.
#pragma once
#include "common/portable.cuh"

enum Role {
    PRIMARY = 0,
    PIECE = 1,    // of a split read: another part of it, a supplementary alignment
    PLACE = 2,    // another place of a part: a secondary alignment
    MENTION = 3,  // another place, told in the tag XA of the part's line and not by a line of its own
    NOTHING = 4,  // was thought of, and did not prove true
};

struct Lines {
    const i64* offsets;  // records + 1: where each record's lines begin
    const i32* slots;
    const i64* windows;  // the number of the line's window, -1 for none
    const u8* roles;
    const i32* owners;  // the line of the part of which this is another place
};

// Another place of a part: the row of its window, and what decides its rank and its order.
struct Place {
    i64 row, diagonal;
    u64 tie;
    i32 slot, owner, score, orientation;  // owner: the line of the part
};

#define LINE_ARGUMENTS \
    const i64 *line_offsets, const i32 *line_slots, const i64 *line_windows, const u8 *roles, const i32 *owners
#define LINES \
    Lines { line_offsets, line_slots, line_windows, roles, owners }
