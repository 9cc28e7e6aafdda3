// A read laid on the reference by a CIGAR.
#pragma once
#include "reads/queries.cuh"
#include "index/reference.cuh"
#include "search/traceback.cuh"

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

// What it shows: points without the bonuses for reached ends, and differences.
struct Measure {
    i32 score, edits;
    i64 reference_end;
};

HOST_DEVICE Measure measure(const Aligned& aligned, const Scoring& scoring) {
    Measure result = {0, 0, aligned.start};
    i64 query = 0;
    for (i32 i = 0; i < aligned.count; ++i) {
        i64 length = aligned.operations[i] >> 4, operation = aligned.operations[i] & 15;
        if (operation == MATCHED) {
            for (i64 at = 0; at < length; at += 32) {
                u64 unclear, marks = aligned.differing(query + at, result.reference_end + at, length - at, unclear);
                i32 columns = (i32)minimum(length - at, (i64)32), different = count_ones(marks),
                    open = count_ones(unclear);
                result.score += (columns - different) * scoring.match - (different - open) * scoring.mismatch;
                result.score -= open * AMBIGUOUS_PENALTY;
                result.edits += different;
            }
        } else if (operation != CLIPPED) {
            result.score -= scoring.gap((i32)length);
            result.edits += (i32)length;
        }
        if (operation != INSERTED && operation != CLIPPED) result.reference_end += length;
        if (operation != DELETED) query += length;
    }
    return result;
}

// What a CIGAR clips off the read, as the record shows it.
struct Clips {
    i32 left, right;
};

HOST_DEVICE Clips clips_of(const u32* operations, i32 count) {
    u32 first = operations[0], last = operations[count - 1];
    return Clips{(first & 15) == CLIPPED ? (i32)(first >> 4) : 0,
                 count > 1 && (last & 15) == CLIPPED ? (i32)(last >> 4) : 0};
}
