// The reference as divsufsort takes it, on the host alone.
#include "index/reference.cuh"

// An item is a word of 32 bases; codes: a barrier's number, in order, and behind all of them A, C, G and T.
KERNEL void unpack_codes(Items items, Reference reference, u8* codes OF(length), i64 length) {
    i64 first_base = reference.barriers - 1;  // the last barrier stands behind the end
    FOR_EACH(word, items) {
        i64 place = word * 32;
        u64 bases = reference.words[word], barriers = reference.barriers_at(place);
        for (i64 i = 0; i < minimum((i64)32, length - place); ++i, bases <<= 2, barriers <<= 2)
            codes[place + i] =
                (u8)(barriers >> 62 ? reference.next_barrier(place + i) : first_base + (i64)(bases >> 62));
    }
}
