// Primary alignments as a table for Python, one row per read.
#include "common/sam_flags.cuh"
#include "mapping/alignments.cuh"
#include "mapping/record_plan.cuh"

struct HitTable {
    i32* contigs OF(hits);     // index of the contig, -1 for an unmapped read
    i64* ref_starts OF(hits);  // 0-based half-open interval on the contig
    i64* ref_ends OF(hits);
    i8* strands OF(hits);  // 1 or -1
    u8* mapqs OF(hits);
    i32* scores OF(hits);             // without bonuses for reached read ends
    i32* suboptimal_scores OF(hits);  // score of the best other placement, 0 for none
    i32* edit_distances OF(hits);
    i64* cigar_offsets OF(hits);  // index into the operations of Extensions
    i32* cigar_lengths OF(hits);
    u8* proper OF(hits);  // 1 if the read and its mate are a proper pair
};

// Write each row (item) of the hit table: the primary alignment of the read first + step * item.
KERNEL void gather_hits(Items items, Queries queries, Reference reference, RecordPlan plan, Extensions extensions,
        Alignments alignments, HitTable hits, i64 first, i64 step) {
    FOR_EACH(item, items) {
        i64 entry = plan.offsets[first + step * item];
        bool mapped = alignments.mapped(entry);
        i64 origin = mapped ? reference.contig_starts[alignments.contigs[entry]] : 0;
        hits.contigs[item] = alignments.contigs[entry];
        hits.ref_starts[item] = mapped ? alignments.reference_starts[entry] - origin : 0;
        hits.ref_ends[item] = mapped ? alignments.reference_ends[entry] - origin : 0;
        hits.strands[item] = alignments.reversed[entry] ? -1 : 1;
        hits.mapqs[item] = alignments.mapqs[entry];
        hits.scores[item] = alignments.scores[entry];
        hits.suboptimal_scores[item] = mapped ? alignments.suboptimal_scores[entry] : 0;
        hits.edit_distances[item] = alignments.edit_distances[entry];
        hits.cigar_offsets[item] = extensions.capacity_ends[entry] - extensions.cigar_capacities[entry];
        hits.cigar_lengths[item] = mapped ? extensions.counts[entry] : 0;
        hits.proper[item] = (alignments.flags[entry] & PROPER_PAIR) > 0;
    }
}
