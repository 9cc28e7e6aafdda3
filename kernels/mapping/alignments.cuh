// A read laid on the reference by a CIGAR.
#pragma once
#include "reads/queries.cuh"
#include "index/reference.cuh"
#include "mapping/traceback.cuh"

// The kernel takes the reference's address itself: where a function did, the GPU's compiler read it as local memory.
struct Aligned {
    const Reference* reference;
    const u8* barrier_letters;
    PackedWords bases, mask;
    i64 start;
    const u32* operations;
    i32 count;

    HOST_DEVICE u8 text_letter(i64 position) const {
        if (reference->reach(position, 1)) return code_letter(reference->packed().base(position));
        return barrier_letters[reference->next_barrier(position)];
    }
    // Marks of the differing columns among `length` (at most 32) matched ones.
    HOST_DEVICE u64 differing(i64 query, i64 place, i64 length, u64& unclear) const {
        unclear = (mask.at(query) | reference->barriers_at(place)) & leading_mask(length);
        return (mismatch_mask(bases.at(query), reference->packed().at(place)) | unclear) & leading_mask(length);
    }
};

// The CIGARs of a plan's entries.
struct Extensions {
    const i64* ends OF(entries);  // an entry's room in `operations` is [ends - cigar_capacities, ends)
    const i64* cigar_capacities OF(entries);
    u32* operations OF(any);  // length << 4 | CigarOperation, in the order of the reference
    i32* counts OF(entries);  // operations of each, 0 for none
    i64* reference_starts OF(entries);

    HOST_DEVICE u32* cigar(i64 entry) const { return operations + ends[entry] - cigar_capacities[entry]; }
};

// What a run's counters take an entry for: a primary one with a place by its MAPQ, and this more in a proper pair; others as
// these.
const i32 PROPER_TALLY = 64;
enum Tally { NO_TALLY = 128, SUPPLEMENTARY_TALLY = 129, SECONDARY_TALLY = 130, UNMAPPED_TALLY = 131, TALLIES = 132 };

// What the entries of a plan proved to be.
struct Alignments {
    u8* roles OF(entries);
    i32* contigs OF(entries);           // -1 where there is no alignment
    i64* reference_starts OF(entries);  // half-open, in the whole reference
    i64* reference_ends OF(entries);
    u8* reversed OF(entries);
    u8* mapqs OF(entries);
    i32* scores OF(entries);  // of this place and of the best other one, without bonuses
    i32* suboptimal_scores OF(entries);
    i32* edit_distances OF(entries);
    u16* flags OF(entries);   // SAM's
    u8* tallies OF(entries);  // a Tally, or a primary alignment's MAPQ

    HOST_DEVICE bool mapped(i64 entry) const { return contigs[entry] >= 0; }
    HOST_DEVICE void unmap(i64 entry) const {
        contigs[entry] = -1;
        scores[entry] = edit_distances[entry] = 0;
        mapqs[entry] = reversed[entry] = 0;
        reference_ends[entry] = 0;
    }
    // Where the read's first base lies, or behind it.
    HOST_DEVICE i64 fragment_end(i64 entry) const {
        return reversed[entry] ? reference_ends[entry] : reference_starts[entry];
    }
    // Whether two alignments of a read begin or end at the same place.
    HOST_DEVICE bool are_duplicates(i64 a, i64 b) const {
        return contigs[a] == contigs[b] && reversed[a] == reversed[b] &&
               (reference_starts[a] == reference_starts[b] || reference_ends[a] == reference_ends[b]);
    }
};

// What an alignment shows: points without the bonuses for reached ends, and differences.
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
                i32 columns = (i32)minimum(length - at, (i64)32), different = popcount(marks), open = popcount(unclear);
                result.score += (columns - different) * scoring.match - (different - open) * scoring.mismatch;
                result.score -= open * AMBIGUOUS_PENALTY;
                result.edits += different;
            }
        } else if (operation != CLIPPED) {
            result.score -= operation == INSERTED ? scoring.insertion((i32)length) : scoring.deletion((i32)length);
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
