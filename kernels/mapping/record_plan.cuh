// The record plan: an entry for each record or XA hit. The first entry of a read is its primary record, mapped or not.
#pragma once
#include "mapping/placement.cuh"

enum Role {
    PRIMARY_ALIGNMENT = 0,
    SUPPLEMENTARY_ALIGNMENT = 1,  // another part of a split read; or a better placement of a part on an ALT contig
    SECONDARY_ALIGNMENT = 2,      // another placement of a part
    XA_HIT = 3,                   // another placement, listed in the tag XA of the part's record
    NOT_REPORTED = 4,             // dropped
};

// Return the maximum number of CIGAR operations: clips and matches around one gap or, if traced, all gaps that pay.
HOST_DEVICE i64 cigar_capacity(i32 length, bool traced, const Scoring& scoring) {
    return traced ? 2 * (scoring.perfect(length) / maximum(scoring.min_gap_cost(1), 1) + 1) + 4 : 5;
}
// The entries of a batch. `windows` holds row indices into RecordPlan.window_rows of Python.
struct RecordPlan {
    const i64* offsets OF(reads + 1);  // index of the first entry of each read, in input order
    i32* slots OF(entries);
    i64* windows OF(entries);  // row of the entry's window, -1 for an unmapped read
    u8* roles OF(entries);     // a Role
    i32* owners OF(entries);   // entry of a placement's part; for a part itself, or its better ALT placement
    u8* mapqs OF(entries);
    i32* suboptimal_scores OF(entries);  // score of the best rival, 0 for none
    u8* bands OF(entries);               // BandKind of the traceback, or NO_BAND if the alignment is not traced
    i32* min_scores OF(entries);         // minimum score of the alignment, without bonuses
    i64* cigar_capacities OF(entries);   // maximum number of CIGAR operations
    HOST_DEVICE void set_entry(i64 entry, const Queries& queries, i64 slot, const Window* window, i64 row, i32 role,
            i64 owner, i32 mapq, i32 suboptimal_score, i32 min_score, const Scoring& scoring) const {
        i32 length = queries.lengths[slot];
        // If the segment reaches min_score only by its bonuses, trace it: another alignment may reach it without them.
        bool traced = window &&
                (window->gapped() ||
                        score_without_bonuses(*window, length, queries.reversed(slot, window->orientation), scoring) <
                                min_score);
        slots[entry] = (i32)slot;
        windows[entry] = window ? row : -1;
        roles[entry] = (u8)role;
        owners[entry] = (i32)owner;
        mapqs[entry] = (u8)mapq;
        suboptimal_scores[entry] = suboptimal_score;
        bands[entry] = traced ? (u8)maximum<i32>(maximum<i32>(window->band, -window->band), NARROW_BAND) : (u8)NO_BAND;
        min_scores[entry] = min_score;
        cigar_capacities[entry] = cigar_capacity(length, traced, scoring);
    }
};

// Another placement of a part, to become a secondary record: the row of its window, and keys for ranking and sorting.
struct SecondaryPlacement {
    i64 row, diagonal;
    u64 tie;
    i32 slot, owner, score, orientation;  // owner: the entry of the part
};
