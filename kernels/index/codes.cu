// The reference as input for divsufsort; runs on the host only.
#include "index/reference.cuh"

// Write a code per base: a barrier's index, or, for A, C, G, T, a code after all barriers. An item is 32 bases.
KERNEL void unpack_codes(Items items, Reference reference, u8* codes OF(length), i64 length) {
    i64 first_base = reference.barriers - 1;  // the last barrier is after the end
    FOR_EACH(word, items) {
        i64 position = word * 32;
        u64 bases = reference.words[word], barriers = reference.barriers_at(position);
        for (i64 i = 0; i < minimum((i64)32, length - position); ++i, bases <<= 2, barriers <<= 2)
            codes[position + i] =
                    (u8)(barriers >> 62 ? reference.next_barrier(position + i) : first_base + (i64)(bases >> 62));
    }
}
