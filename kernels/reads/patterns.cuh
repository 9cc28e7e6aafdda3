// Patterns: the queries of an exact search, each packed once, as it was read.
//
// Patterns lie in slots ordered by length. Consecutive slots, 32 on the GPU, form a block whose words are interleaved, so
// that the threads of a warp read neighbouring words; a block has as many words a slot as its longest pattern needs. A
// pattern with an ambiguous base occurs nowhere: it has the length 0.
#pragma once
#include "common/packed.cuh"

// One pattern on one strand: its words, or those of its reverse complement, made as they are read.
struct Pattern {
    PackedWords words;
    i32 length;
    bool reversed;

    // The 32 bases from position on, a multiple of 32; what lies behind the pattern's end is undefined.
    HOST_DEVICE u64 at(i64 position) const {
        if (!reversed) return words.at(position);
        i64 from = length - 32 - position;
        return reverse_complement(from < 0 ? words.words[0] >> (-2 * from) : words.at(from));
    }
};

struct Patterns {
    const u64* words OF(any);
    const i64* tile_offsets OF((patterns - 1 >> tile_bits) + 2);  // where each block's words begin
    const i32* lengths OF(patterns);                               // by slot, 0 where a base is ambiguous
    const i32* slot_of OF(patterns);                               // the slot of each record
    i32 tile_bits;                                                 // a block has 2^tile_bits lanes

    HOST_DEVICE Pattern get(i64 slot, bool reversed) const {
        i64 lanes = (i64)1 << tile_bits, lane = slot & (lanes - 1);
        return Pattern{PackedWords{words + tile_offsets[slot >> tile_bits] + lane, lanes}, lengths[slot], reversed};
    }
};
