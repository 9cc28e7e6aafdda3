// A read laid on the reference by a CIGAR.
#pragma once
#include "queries.cuh"
#include "reference.cuh"
#include "traceback.cuh"

struct Aligned {
    const Reference* reference;
    const u8* barrier_letters;
    Words bases, mask;
    i64 start;
    const u32* operations;
    i32 count;

    HOST_DEVICE u8 text_letter(i64 position) const {
        if (reference->reach(position, 1)) return code_letter(reference->packed().base(position));
        return barrier_letters[reference->barrier_behind(position)];
    }
    // Marks of the differing columns among `length` (at most 32) matched ones.
    HOST_DEVICE u64 differing(i64 query, i64 place, i64 length, u64& unclear) const {
        unclear = (mask.at(query) | reference->barriers_at(place)) & first_bases(length);
        return (differences(bases.at(query), reference->packed().at(place)) | unclear) & first_bases(length);
    }
};

// What a CIGAR clips off the read, as the record shows it.
struct Clips {
    i32 left, right;
};

HOST_DEVICE Clips clips_of(const u32* operations, i32 count) {
    u32 first = operations[0], last = operations[count - 1];
    return Clips{(first & 15) == CLIPPED ? (i32)(first >> 4) : 0, count > 1 && (last & 15) == CLIPPED ? (i32)(last >> 4) : 0};
}
