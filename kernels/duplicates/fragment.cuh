// What tells duplicates of fragments apart: the places of their outer ends, and where the sequencer saw them.
#pragma once
#include "bam/marking.cuh"

// Bits of a place: the bases of all contigs, with MARGIN neighbour each for ends that clipped bases reach.
const i64 PLACE_BITS = 40, LAST_PLACE = 0xFFFFFFFFFF;
const i64 MARGIN = 1048576;

// Of a key's lower half, where that is no place: what has one mapped read; and what has one, whose mate is mapped too, but is
// not there.
const u64 SINGLE = 0x3FFFFFFFFFFull, MATE_MISSING = 0x3FFFFFFFFFEull;
// Of a key's upper half: what has no mapped read.
const u64 UNMAPPED_KEY = 0x1FFFFFFFFFFFFFFull;

// A tile of a name that tells none.
const i64 NO_TILE = -1;

// high: library, place and strand of the end that comes first; low: place and strand of the other one. score: of base
// qualities. x, y, tile: of the cluster; group: the number of the read group; strands: of the first and the second mate.
struct Fragment {
    u64 high;
    u64 low;
    i32 x;
    i32 y;
    i16 score;
    i16 tile;
    u16 group;
    u16 strands;

    HOST_DEVICE bool is_pair() const { return low < MATE_MISSING; }
    HOST_DEVICE i64 library() const { return (i64)(high >> (PLACE_BITS + 1)); }
    // As `high`, of the other end of a pair.
    HOST_DEVICE u64 other_high() const { return high >> (PLACE_BITS + 1) << (PLACE_BITS + 1) | low; }
    HOST_DEVICE bool has_place() const { return tile != NO_TILE; }
    HOST_DEVICE bool is_better(const Fragment& other) const {
        if (score != other.score) return score > other.score;
        if (tile != other.tile) return tile < other.tile;
        return x != other.x ? x < other.x : y < other.y;
    }
};

// Of a library: reads and records; of mates that are both mapped each read counts.
enum Counter {
    UNPAIRED_READS,
    PAIRED_READS,
    OTHER_RECORDS,
    UNMAPPED_READS,
    UNPAIRED_DUPLICATES,
    PAIR_DUPLICATES,
    OPTICAL_DUPLICATES,
    MISSING_MATES,
    COUNTERS,
};

// All fragments, and their barcodes, if those count: 0 for none.
struct Fragments {
    const Fragment* rows OF(any);
    const u64* barcodes OF(any);
    bool has_barcodes;

    HOST_DEVICE u64 barcode(i64 fragment) const { return has_barcodes ? barcodes[fragment] : 0; }
    HOST_DEVICE bool same(u32 one, u32 other) const {
        const Fragment &a = rows[one], &b = rows[other];
        return a.high == b.high && a.low == b.low && a.low != MATE_MISSING && barcode(one) == barcode(other);
    }
};
