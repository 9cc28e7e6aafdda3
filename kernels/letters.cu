// Letters as codes.
#include "comparison.cuh"

// An item is an ASCII letter of either case; U is T.
KERNEL void encode_letters(i64 begin, i64 end, const u8* letters, u8* codes) {
    FOR_EACH(i, begin, end) {
        u8 letter = letters[i] & 0xDF;
        u8 code = letter >> 1 & 3;  // A 0, C 1, T and U 2, G 3
        bool known = letter == 'A' || letter == 'C' || letter == 'G' || letter == 'T' || letter == 'U';
        codes[i] = known ? code ^ code >> 1 : NO_LETTER;
    }
}
