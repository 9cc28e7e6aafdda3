// The record plan: what is reported of each read, an entry each. The first entry of a read is its primary one, mapped or not.
#pragma once
#include "mapping/placement.cuh"

enum Role {
    PRIMARY_ALIGNMENT = 0,
    SUPPLEMENTARY_ALIGNMENT = 1,  // of a split read: another part of it; of a part: a better place on an ALT contig
    SECONDARY_ALIGNMENT = 2,      // another place of a part
    XA_HIT = 3,        // another place, reported in the tag XA of the part's record and not by one of its own
    NOT_REPORTED = 4,  // was considered, and did not prove true
};

// The most operations of a CIGAR: clips and matches around one gap, or as many gaps as matches can pay for.
HOST_DEVICE i64 cigar_capacity(i32 length, bool traced, const Scoring& scoring) {
    return traced ? 2 * (scoring.perfect(length) / maximum(scoring.least_gap(1), 1) + 1) + 4 : 5;
}

struct RecordPlan {
    const i64* offsets OF(reads + 1);  // where each read's entries begin, in the order of the input
    i32* slots OF(entries);
    i64* windows OF(entries);  // the row of the entry's window, -1 for none
    u8* roles OF(entries);     // a Role
    i32* owners OF(entries);   // the entry of the part of which this is another place; of parts, themselves, unless an
                               // ALT contig has a better place, which is that
    u8* mapqs OF(entries);
    i32* suboptimal_scores OF(entries);       // the score of the best rival, 0 for none
    u8* bands OF(entries);          // of the window if the alignment is traced, else NO_BAND
    i32* min_scores OF(entries);  // what the alignment has to score
    i64* cigar_capacities OF(entries);         // for its operations

    HOST_DEVICE void put(i64 entry, const Queries& queries, i64 slot, const Window* window, i64 row, i32 role,
                         i64 owner, i32 mapq, i32 second, i32 least, const Scoring& scoring) const {
        i32 length = queries.lengths[slot];
        // A segment that scores enough by bonuses alone may hold an alignment that does without.
        bool traced = window && (window->gapped() ||
                                 score_without_bonuses(*window, length, queries.reversed(slot, window->orientation),
                                                       scoring) < least);
        slots[entry] = (i32)slot;
        windows[entry] = window ? row : -1;
        roles[entry] = (u8)role;
        owners[entry] = (i32)owner;
        mapqs[entry] = (u8)mapq;
        suboptimal_scores[entry] = second;
        bands[entry] = traced ? (u8)maximum<i32>(maximum<i32>(window->band, -window->band), NARROW_BAND) : (u8)NO_BAND;
        min_scores[entry] = least;
        cigar_capacities[entry] = cigar_capacity(length, traced, scoring);
    }
};

// Another place of a part, to be an entry: the row of its window, and what decides its rank and its order.
struct SecondaryPlacement {
    i64 row, diagonal;
    u64 tie;
    i32 slot, owner, score, orientation;  // owner: the entry of the part
};
