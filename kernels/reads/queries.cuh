// The queries of a batch: every read in both orientations, packed. Orientation 0 is the canonical one, the smaller of
// the read and its reverse complement (code 4, an ambiguous base, is its own complement). So a read and its reverse
// complement pass every stage in the same way and differ only in `flipped`.
//
// Reads are in slots sorted by length. A tile is a group of consecutive slots, 32 on the GPU, whose words are
// interleaved, so that the threads of a warp read neighbouring words. A tile has four planes: orientations 0 and 1, and
// for each of them the mask whose low bit of each pair marks an ambiguous base. A slot has per plane the
// words that the longest read of the tile needs, and a pad word.
#pragma once
#include "common/packed.cuh"

// Flags of a read. An absent read is the placeholder of a missing mate; it has no letters and no record.
enum { READ_FLIPPED = 1, READ_AMBIGUOUS = 2, READ_ABSENT = 4, READ_FAILED = 8 };

struct Queries {
    const u64* words OF(any);
    const i64* tile_offsets OF((reads - 1 >> tile_bits) + 2);  // where the words of each tile start
    const i32* lengths OF(reads);                              // by slot
    const u8* flags OF(reads);                                 // by slot: READ_ flags
    const u64* hashes OF(reads);                               // by slot
    const i32* order OF(reads);                                // the record in each slot
    const i32* slot_of OF(reads);                              // the slot of each record
    i32 tile_bits;                                             // a tile has 2^tile_bits slots
    HOST_DEVICE i64 plane_words(i64 slot) const {
        i64 tile = slot >> tile_bits;
        return (tile_offsets[tile + 1] - tile_offsets[tile]) >> (2 + tile_bits);
    }
    HOST_DEVICE PackedWords plane(i64 slot, i32 index) const {
        i64 lanes = (i64)1 << tile_bits, lane = slot & (lanes - 1);
        return PackedWords{words + tile_offsets[slot >> tile_bits] + index * plane_words(slot) * lanes + lane, lanes};
    }
    HOST_DEVICE PackedWords bases(i64 slot, i32 orientation) const { return plane(slot, orientation); }
    HOST_DEVICE PackedWords mask(i64 slot, i32 orientation) const { return plane(slot, 2 + orientation); }
    // Return true if an orientation is the reverse complement of the read as it was sequenced.
    HOST_DEVICE bool reversed(i64 slot, i32 orientation) const {
        return (orientation != 0) != ((flags[slot] & READ_FLIPPED) != 0);
    }
};
