// Patterns: the queries of an exact search, packed in one orientation, as they were read.
//
// Patterns are in slots sorted by length. A tile is a group of consecutive slots, 32 on the GPU, whose words are
// interleaved, so that the threads of a warp read neighbouring words. A tile has the words per slot that its longest
// pattern needs. A pattern with an ambiguous base occurs nowhere and has length 0.
#pragma once
#include "common/packed.cuh"

// A pattern on one strand; the words of the reverse complement are computed when they are read.
struct Pattern {
    PackedWords words;
    i32 length;
    bool reversed;
    // The 32 bases from `position` on, a multiple of 32; bases after the pattern's end are undefined.
    HOST_DEVICE u64 at(i64 position) const {
        if (!reversed) return words.at(position);
        i64 from = length - 32 - position;
        return reverse_complement(from < 0 ? words.words[0] >> (-2 * from) : words.at(from));
    }
};

struct Patterns {
    const u64* words OF(any);
    const i64* tile_offsets OF((patterns - 1 >> tile_bits) + 2);  // where the words of each tile start
    const i32* lengths OF(patterns);                              // by slot, 0 if a base is ambiguous
    const i32* slot_of OF(patterns);                              // the slot of each record
    i32 tile_bits;                                                // a tile has 2^tile_bits slots
    HOST_DEVICE Pattern get(i64 slot, bool reversed) const {
        i64 lanes = (i64)1 << tile_bits, lane = slot & (lanes - 1);
        return Pattern{PackedWords{words + tile_offsets[slot >> tile_bits] + lane, lanes}, lengths[slot], reversed};
    }
};
