// Packed bases: A, C, G, T are 0, 1, 2, 3 in two bits, 32 bases per word, the first base in the high bits, so that
// words compare as the text does. A packed array ends with a pad word, so that 32 bases may be read at any offset.
#pragma once
#include "common/portable.cuh"

const u64 LOW_BITS = 0x5555555555555555ull;
// Return the code of a letter: 0 to 3 for A, C, G, T (U as T), 4 for other IUPAC nucleotides, 5 for others.
HOST_DEVICE u8 base_code(u8 letter) {
    const u32 bases = 1u << 1 | 1u << 3 | 1u << 7 | 1u << 20 | 1u << 21;  // bit i: the letter i of the alphabet
    const u32 others = 1u << 14 | 1u << 18 | 1u << 25 | 1u << 11 | 1u << 13 | 1u << 19 | 1u << 23 | 1u << 2 | 1u << 4 |
            1u << 8 | 1u << 22;
    u32 bit = (letter & 0xC0) == 0x40 ? 1u << (letter & 31) : 0;
    return bit & bases ? (u8)((letter >> 1 ^ letter >> 2) & 3) : bit & others ? 4 : 5;
}

HOST_DEVICE u8 code_letter(i32 code) { return (u8)(0x4E54474341ull >> (8 * code)); }  // "ACGTN", lowest byte first
// The packed bases of one query: word w is words[w * stride]. The reference has a stride of 1.
struct PackedWords {
    const u64* words;
    i64 stride;
    HOST_DEVICE u64 at(i64 position) const {
        const u64* word = words + (position >> 5) * stride;
        i32 shift = 2 * (i32)(position & 31);
        return shift ? word[0] << shift | word[stride] >> (64 - shift) : word[0];
    }
    HOST_DEVICE i32 base(i64 position) const {
        return (i32)(words[(position >> 5) * stride] >> (62 - 2 * (i32)(position & 31)) & 3);
    }
};

// Reads consecutive groups of 32 bases from any position of a packed array; each word is loaded once.
struct PackedReader {
    const u64* following;
    u64 current;
    i32 shift;
    HOST_DEVICE PackedReader(const u64* words, i64 position)
        : following(words + (position >> 5)), current(*following++), shift(2 * (i32)(position & 31)) {}
    HOST_DEVICE u64 next() {
        u64 before = current;
        current = *following++;
        return before << shift | current >> 1 >> (63 - shift);  // in two steps: a shift by 64 is undefined
    }
};

// Return a mask of the bases in which two packed words differ: the lower bit of each such base's pair is set.
HOST_DEVICE u64 mismatch_mask(u64 a, u64 b) {
    u64 x = a ^ b;
    return (x | x >> 1) & LOW_BITS;
}

// Return the mask of all bits of the first n bases of a word, n in 0..32.
HOST_DEVICE u64 leading_mask(i64 n) { return n >= 32 ? ~0ull : ~(~0ull >> (2 * n)); }
// Return the reverse complement of the 32 bases of a word.
HOST_DEVICE u64 reverse_complement(u64 bases) {
    u64 x = reverse_bits(~bases);
    return (x >> 1 & LOW_BITS) | (x & LOW_BITS) << 1;
}

// Return the first k bases of a word as an integer of 2 * k bits, k in 0..32.
HOST_DEVICE i64 leading_code(u64 bases, i32 k) { return k ? (i64)(bases >> (64 - 2 * k)) : 0; }
// Return the index of the first base with a set bit in a mask of pairs of bits, else 32.
HOST_DEVICE i32 first_set_base(u64 pairs) { return leading_zeros(pairs) >> 1; }
