// Encode sequences of nucleotides.
#include "pairwise/schemes.cuh"

const i32 PAD = 16;  // bytes after the last letter that kernels may read
// Encode ASCII letters of either case: A, C, G, T or U as 0 to 3, others as NOT_NUCLEOTIDE. Branch-free, so that
// compilers vectorize it on the CPU.
KERNEL void encode_letters(Items items, const u8* letters OF(items), u8* codes OF(items + PAD)) {
    FOR_EACH(i, items) {
        u8 letter = letters[i] & 0xDF, bits = letter >> 1 & 3;
        u8 known = bits == 0 ? 'A' : bits == 1 ? 'C' : bits == 2 ? 'T' : 'G';
        codes[i] = letter == known || letter == 'U' ? bits ^ bits >> 1 : NOT_NUCLEOTIDE;
    }
}
