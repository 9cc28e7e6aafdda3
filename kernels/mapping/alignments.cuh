// Alignments: reads placed on the reference by CIGARs, and what the CIGARs score.
#pragma once
#include "reads/queries.cuh"
#include "index/reference.cuh"
#include "mapping/traceback.cuh"

// A read, the reference position where its alignment starts, and its CIGAR. The kernel itself takes the address of the
// reference: if a device function took it, the GPU's compiler placed the reference in local memory.
struct AlignedRead {
    const Reference* reference;
    const u8* barrier_letters;
    PackedWords bases, mask;
    i64 start;
    const u32* operations;
    i32 count;
    HOST_DEVICE u8 reference_letter(i64 position) const {
        if (reference->reach(position, 1)) return code_letter(reference->packed().base(position));
        return barrier_letters[reference->next_barrier(position)];
    }
    // Return a mask of the mismatches in `length` (at most 32) columns; ambiguous: the columns with an ambiguous base.
    HOST_DEVICE u64 mismatches(i64 query, i64 position, i64 length, u64& ambiguous) const {
        ambiguous = (mask.at(query) | reference->barriers_at(position)) & leading_mask(length);
        return (mismatch_mask(bases.at(query), reference->packed().at(position)) | ambiguous) & leading_mask(length);
    }
};

// The CIGARs of the entries of a RecordPlan. Each entry has a fixed capacity in `operations`.
struct Extensions {
    const i64* capacity_ends OF(entries);  // inclusive prefix sum of cigar_capacities: the operations end before it
    const i64* cigar_capacities OF(entries);
    u32* operations OF(any);            // length << 4 | CigarOperation, in reference order
    i32* counts OF(entries);            // operations of each entry, 0 for none
    i64* reference_starts OF(entries);  // position of the first aligned base in the whole reference
    HOST_DEVICE u32* cigar(i64 entry) const { return operations + capacity_ends[entry] - cigar_capacities[entry]; }
};

// The counter that an entry adds to: the MAPQ of a mapped primary record, plus PROPER_TALLY if proper; else a Tally.
const i32 PROPER_TALLY = 64;
enum Tally { NO_TALLY = 128, SUPPLEMENTARY_TALLY = 129, SECONDARY_TALLY = 130, UNMAPPED_TALLY = 131, TALLIES = 132 };

// The alignments of the entries of a RecordPlan.
struct Alignments {
    u8* roles OF(entries);              // a Role; NOT_REPORTED for entries that were dropped
    i32* contigs OF(entries);           // index of the contig, -1 for none
    i64* reference_starts OF(entries);  // half-open interval in the whole reference
    i64* reference_ends OF(entries);
    u8* reversed OF(entries);  // 1 if the reverse complement of the read is aligned
    u8* mapqs OF(entries);
    i32* scores OF(entries);             // without bonuses for reached read ends
    i32* suboptimal_scores OF(entries);  // score of the best other placement, 0 for none
    i32* edit_distances OF(entries);
    u16* flags OF(entries);   // SAM flags
    u8* tallies OF(entries);  // a Tally, or the MAPQ of a primary record, plus PROPER_TALLY in a proper pair
    HOST_DEVICE bool mapped(i64 entry) const { return contigs[entry] >= 0; }
    HOST_DEVICE void unmap(i64 entry) const {
        contigs[entry] = -1;
        scores[entry] = edit_distances[entry] = 0;
        mapqs[entry] = reversed[entry] = 0;
        reference_ends[entry] = 0;
    }
    // Return the 5' end of the read as sequenced: a start on the forward strand, an end on the reverse strand.
    HOST_DEVICE i64 fragment_end(i64 entry) const {
        return reversed[entry] ? reference_ends[entry] : reference_starts[entry];
    }
    // Return true if two alignments of a read start or end at the same position.
    HOST_DEVICE bool are_duplicates(i64 a, i64 b) const {
        return contigs[a] == contigs[b] && reversed[a] == reversed[b] &&
                (reference_starts[a] == reference_starts[b] || reference_ends[a] == reference_ends[b]);
    }
};

// The score of an alignment without bonuses for reached read ends, its edit distance, and its reference end.
struct AlignmentMeasure {
    i32 score, edits;
    i64 reference_end;
};

// Return score, edit distance and reference end of an alignment, by its CIGAR.
HOST_DEVICE AlignmentMeasure measure(const AlignedRead& aligned, const Scoring& scoring) {
    AlignmentMeasure result = {0, 0, aligned.start};
    i64 query = 0;
    for (i32 i = 0; i < aligned.count; ++i) {
        i64 length = aligned.operations[i] >> 4, operation = aligned.operations[i] & 15;
        if (operation == MATCHED) {
            for (i64 at = 0; at < length; at += 32) {
                u64 ambiguous,
                        marks = aligned.mismatches(query + at, result.reference_end + at, length - at, ambiguous);
                i32 columns = (i32)minimum(length - at, (i64)32), different = popcount(marks),
                    open = popcount(ambiguous);
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

// Bases that a CIGAR clips at either end, in the orientation of the record.
struct Clips {
    i32 left, right;
};

// Return the clipped bases of a CIGAR of `count` operations.
HOST_DEVICE Clips clips_of(const u32* operations, i32 count) {
    u32 first = operations[0], last = operations[count - 1];
    return Clips{(first & 15) == CLIPPED ? (i32)(first >> 4) : 0,
            count > 1 && (last & 15) == CLIPPED ? (i32)(last >> 4) : 0};
}
