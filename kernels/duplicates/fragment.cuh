// A fragment for duplicate marking: the positions of its outer ends (unclipped 5' ends), and its flow cell cluster.
#pragma once
#include "bam/marking.cuh"

// Bits of a position in the concatenated contigs, with MARGIN before and after each contig for ends in clipped bases.
const i64 POSITION_BITS = 40, MAX_POSITION = 0xFFFFFFFFFF;
const i64 MARGIN = 1048576;
// Values of `low` that are not positions: fragments with one mapped read, and with a mate that is mapped but missing.
const u64 SINGLE = 0x3FFFFFFFFFFull, MATE_MISSING = 0x3FFFFFFFFFEull;
const u64 UNMAPPED_KEY = 0x1FFFFFFFFFFFFFFull;  // value of `high` for fragments without a mapped read
const i64 NO_TILE = -1;                         // tile of a read name without tile and coordinates
// high: library, position and strand of the end that comes first; low: position and strand of the other end. score: sum
// of base qualities. x, y, tile: the cluster; group: index of the read group; strands: first mate * 2 + second mate.
struct Fragment {
    u64 high, low;
    i32 x, y;
    i16 score, tile;
    u16 group, strands;
    HOST_DEVICE bool is_pair() const { return low < MATE_MISSING; }
    HOST_DEVICE i64 library() const { return (i64)(high >> (POSITION_BITS + 1)); }
    // Return the value of `high` for the other end of a pair.
    HOST_DEVICE u64 other_high() const { return high >> (POSITION_BITS + 1) << (POSITION_BITS + 1) | low; }
    HOST_DEVICE bool has_coordinates() const { return tile != NO_TILE; }
    HOST_DEVICE bool is_better(const Fragment& other) const {
        if (score != other.score) return score > other.score;
        if (tile != other.tile) return tile < other.tile;
        return x != other.x ? x < other.x : y < other.y;
    }
};

// Counters of a library. If both mates of a pair are mapped, each read is counted.
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

// All fragments, and their barcodes if they are used; 0 without a barcode.
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
