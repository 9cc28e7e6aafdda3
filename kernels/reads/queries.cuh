// The queries of a batch: every read in both orientations, packed. Orientation 0 is the canonical one, the smaller of
// the read and its reverse complement (code 4, an ambiguous base, is its own complement), so that a read and its
// reverse complement take the same way through every stage and differ only in `flipped`.
//
// Reads lie in slots ordered by length. Consecutive slots, 32 on the GPU, form a block whose words are interleaved, so
// that the threads of a warp read neighbouring words. A block has four planes (orientation 0, orientation 1, and for each
// the mask whose low pair bits mark ambiguous bases) of as many words as its longest read needs, and a pad word.
#pragma once
#include "common/packed.cuh"

// What is known of a read. One that is absent keeps the place of a mate, has no letters and no record.
enum { READ_FLIPPED = 1, READ_AMBIGUOUS = 2, READ_ABSENT = 4, READ_FAILED = 8 };

struct Queries {
    const u64* words OF(any);
    const i64* tile_offsets OF((reads - 1 >> tile_bits) + 2);  // where each block's words begin
    const i32* lengths OF(reads);                               // by slot
    const u8* flags OF(reads);                                  // by slot: what is known of each, as below
    const u64* hashes OF(reads);                                // by slot
    const i32* order OF(reads);                                 // the record in each slot
    const i32* slot_of OF(reads);                               // the slot of each record
    i32 tile_bits;                                              // a block has 2^tile_bits lanes

    HOST_DEVICE i64 plane_words(i64 slot) const {
        i64 block = slot >> tile_bits;
        return (tile_offsets[block + 1] - tile_offsets[block]) >> (2 + tile_bits);
    }
    HOST_DEVICE PackedWords plane(i64 slot, i32 number) const {
        i64 lanes = (i64)1 << tile_bits, lane = slot & (lanes - 1);
        return PackedWords{words + tile_offsets[slot >> tile_bits] + number * plane_words(slot) * lanes + lane, lanes};
    }
    HOST_DEVICE PackedWords bases(i64 slot, i32 orientation) const { return plane(slot, orientation); }
    HOST_DEVICE PackedWords mask(i64 slot, i32 orientation) const { return plane(slot, 2 + orientation); }
    // Whether an orientation is the reverse complement of the read as it was sequenced.
    HOST_DEVICE bool reversed(i64 slot, i32 orientation) const {
        return (orientation != 0) != ((flags[slot] & READ_FLIPPED) != 0);
    }
};
