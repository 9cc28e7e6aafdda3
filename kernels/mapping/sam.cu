// Format SAM and BAM records: the length of each entry's record, and its bytes.
#include "mapping/alignments.cuh"
#include "mapping/comment_tags.cuh"
#include "mapping/record_plan.cuh"
#include "mapping/records.cuh"

// Write the value of the tag MD of an alignment.
template <class Sink> HOST_DEVICE void put_md(Sink& sink, const AlignedRead& aligned) {
    i64 query = 0, position = aligned.start, equal = 0;
    for (i32 i = 0; i < aligned.count; ++i) {
        i64 length = aligned.operations[i] >> 4, operation = aligned.operations[i] & 15;
        if (operation == MATCHED) {
            for (i64 at = 0; at < length; at += 32) {
                u64 ambiguous, marks = aligned.mismatches(query + at, position + at, length - at, ambiguous);
                i64 done = 0;
                while (marks) {
                    i64 column = first_set_base(marks);
                    marks ^= 1ull << (62 - 2 * column);
                    put_number(sink, equal + column - done);
                    sink.put(aligned.reference_letter(position + at + column));
                    equal = 0, done = column + 1;
                }
                equal += minimum(length - at, (i64)32) - done;
            }
            position += length;
        } else if (operation == DELETED) {
            put_number(sink, equal);
            equal = 0;
            sink.put('^');
            for (i64 at = 0; at < length; ++at) sink.put(aligned.reference_letter(position + at));
            position += length;
        }
        if (operation != DELETED) query += length;
    }
    put_number(sink, equal);
}

const i32 MIN_TRUSTED_PHRED = 15;  // minimum phred of a base that counts when duplicates are compared
// An item is a read: sum its qualities of at least MIN_TRUSTED_PHRED, as samtools fixmate -m does for the tag ms.
KERNEL void sum_qualities(Items items, ReadTexts texts, Queries queries, i32* quality_sums OF(items)) {
    FOR_EACH(record, items) {
        i64 start = texts.quality_starts[record];
        i32 sum = 0, length = start < 0 ? 0 : queries.lengths[queries.slot_of[record]];
        for (i32 i = 0; i < length; ++i) {
            i32 phred = texts.bytes[start + i] - '!';
            sum += phred >= MIN_TRUSTED_PHRED ? phred : 0;
        }
        quality_sums[record] = sum;
    }
}

// Format and optional contents of the records.
struct RecordStyle {
    const u8* common_tags OF(common_tags_length);  // tags of all records
    i64 common_tags_length;
    bool has_read_group;  // RG is among common_tags
    bool comments;        // copy the tags in the comments of reads
    bool barcodes;        // write the barcode of the read name as RX
    bool soft_clipped;    // store the whole read in supplementary records
    i32 encoding;         // a RecordEncoding
};

// Writer of the records of a batch.
struct RecordWriter {
    ReadTexts texts;
    Queries queries;
    Reference reference;
    const u8* barrier_letters;
    ContigNames names;
    RecordPlan plan;
    Extensions extensions;
    Alignments alignments;
    const i32* quality_sums;
    RecordStyle style;
    HOST_DEVICE bool mapped(i64 entry) const { return alignments.mapped(entry); }
    HOST_DEVICE i64 record_of(i64 entry) const { return queries.order[plan.slots[entry]]; }
    HOST_DEVICE i64 position(i64 entry) const {
        return alignments.reference_starts[entry] - reference.contig_starts[alignments.contigs[entry]];
    }
    // Return the primary entry of the mate of a read.
    HOST_DEVICE i64 mate_of(i64 record) const { return plan.offsets[record ^ 1]; }
    HOST_DEVICE RecordFields fields(i64 entry) const {
        i64 record = record_of(entry), slot = plan.slots[entry];
        RecordFields fields = unmapped_fields(record, alignments.flags[entry], queries.lengths[slot]);
        if (mapped(entry)) {
            fields.mapq = alignments.mapqs[entry];
            fields.contig = alignments.contigs[entry];
            fields.position = position(entry);
            fields.end = fields.position + alignments.reference_ends[entry] - alignments.reference_starts[entry];
            fields.operations = extensions.cigar(entry);
            fields.operation_count = extensions.counts[entry];
            if (alignments.roles[entry] == SECONDARY_ALIGNMENT) fields.length = 0;
            bool whole = style.soft_clipped || reference.on_alternate(fields.contig);
            if (alignments.roles[entry] != PRIMARY_ALIGNMENT && !whole) fields.hard_clip();
        }
        if (!(alignments.flags[entry] & PAIRED)) return fields;
        i64 mate = mate_of(record);
        if (mapped(mate)) {
            fields.mate_contig = alignments.contigs[mate];
            fields.mate_position = position(mate);
            if (!mapped(entry)) {  // at its mate, so that sorting keeps both together
                fields.contig = fields.mate_contig;
                fields.position = fields.mate_position;
                fields.end = fields.position + 1;
            } else if (fields.contig == fields.mate_contig) {
                fields.template_length = alignments.fragment_end(mate) - alignments.fragment_end(entry);
            }
        } else if (mapped(entry)) {  // an unmapped mate has the position of the primary entry
            i64 primary = plan.offsets[record];
            fields.mate_contig = alignments.contigs[primary];
            fields.mate_position = position(primary);
        }
        return fields;
    }
    template <class Sink> HOST_DEVICE void put_cigar_text(Sink& sink, i64 entry) const {
        put_cigar(sink, extensions.cigar(entry), extensions.counts[entry], false);
    }
    // Write an element of SA: contig,position,strand,CIGAR,MAPQ,edit distance; or of XA: signed position, no MAPQ.
    template <class Sink> HOST_DEVICE void put_sa_or_xa_hit(Sink& sink, i64 entry) const {
        bool is_part = alignments.roles[entry] <= SUPPLEMENTARY_ALIGNMENT;
        u8 strand = alignments.reversed[entry] ? '-' : '+';
        names.put(sink, alignments.contigs[entry]);
        sink.put(',');
        if (!is_part) sink.put(strand);
        put_number(sink, position(entry) + 1);
        sink.put(',');
        if (is_part) sink.put(strand), sink.put(',');
        put_cigar_text(sink, entry);
        sink.put(',');
        if (is_part) put_number(sink, alignments.mapqs[entry]), sink.put(',');
        put_number(sink, alignments.edit_distances[entry]);
        sink.put(';');
    }
    // Write the tag SA with the other parts of the read, or XA with the other placements of the entry's part.
    template <class Sink> HOST_DEVICE void put_hits(Sink& sink, i64 entry, i64 record, bool parts) const {
        bool has_hit = false;
        for (i64 other = plan.offsets[record]; other < plan.offsets[record + 1]; ++other) {
            i32 role = alignments.roles[other];
            bool wanted = parts ? role <= SUPPLEMENTARY_ALIGNMENT && other != entry
                                : role == XA_HIT && plan.owners[other] == entry;
            if (!wanted) continue;
            if (!has_hit) put_tag_name(sink, style.encoding, parts ? 'S' : 'X', 'A', 'Z');
            has_hit = true;
            put_sa_or_xa_hit(sink, other);
        }
        if (has_hit) end_text_tag(sink, style.encoding);
    }
    template <class Sink> HOST_DEVICE void put_alignment_tags(Sink& sink, i64 entry) const {
        i64 slot = plan.slots[entry];
        i32 orientation = queries.reversed(slot, alignments.reversed[entry]);
        AlignedRead aligned = {&reference, barrier_letters, queries.bases(slot, orientation),
                queries.mask(slot, orientation), alignments.reference_starts[entry], extensions.cigar(entry),
                extensions.counts[entry]};
        put_number_tag(sink, style.encoding, 'N', 'M', alignments.edit_distances[entry]);
        put_tag_name(sink, style.encoding, 'M', 'D', 'Z');
        put_md(sink, aligned);
        end_text_tag(sink, style.encoding);
        put_number_tag(sink, style.encoding, 'A', 'S', alignments.scores[entry]);
        put_number_tag(sink, style.encoding, 'X', 'S', alignments.suboptimal_scores[entry]);
    }
    template <class Sink> HOST_DEVICE void put_mate_tags(Sink& sink, i64 record) const {
        i64 mate = mate_of(record);
        if (mapped(mate)) {
            put_tag_name(sink, style.encoding, 'M', 'C', 'Z');
            put_cigar_text(sink, mate);
            end_text_tag(sink, style.encoding);
            put_number_tag(sink, style.encoding, 'M', 'Q', alignments.mapqs[mate]);
        }
        put_number_tag(sink, style.encoding, 'm', 's', quality_sums[record ^ 1]);
    }
    template <class Sink> HOST_DEVICE void put(Sink& sink, i64 entry, i64 size) const {
        if (alignments.roles[entry] >= XA_HIT) return;
        i64 record = record_of(entry);
        put_fields(sink, style.encoding, texts, names, fields(entry), size);
        if (mapped(entry)) put_alignment_tags(sink, entry);
        if (alignments.flags[entry] & PAIRED) put_mate_tags(sink, record);
        if (alignments.roles[entry] <= SUPPLEMENTARY_ALIGNMENT) {
            put_hits(sink, entry, record, true);
            i64 better = plan.owners[entry];
            if (better != entry && mapped(entry) && alignments.roles[better] <= SUPPLEMENTARY_ALIGNMENT)
                put_share_tag(sink, style.encoding, 'p', 'a', alignments.scores[entry], alignments.scores[better]);
            put_hits(sink, entry, record, false);
        }
        sink.copy(style.common_tags, style.common_tags_length);
        const u8* name = texts.bytes + texts.name_starts[record];
        TextSpan barcode = {name, name};
        if (style.barcodes) barcode = barcode_of({name, name + texts.name_lengths[record]});
        if (barcode.length()) put_barcode_tag(sink, style.encoding, barcode);
        if (style.comments)
            put_comment_tags(sink, style.encoding, comment_of(name), style.has_read_group, barcode.length() > 0);
        end_record(sink, style.encoding);
    }
};

// Compute the bytes of the record of each entry (item), 0 for an entry without a record.
KERNEL void measure_records(Items items, ReadTexts texts, Queries queries, Reference reference,
        const u8* barrier_letters OF(barriers), ContigNames names, RecordPlan plan, Extensions extensions,
        Alignments alignments, const i32* quality_sums OF(any), RecordStyle style, i64* lengths OF(items)) {
    RecordWriter writer = {
            texts, queries, reference, barrier_letters, names, plan, extensions, alignments, quality_sums, style};
    FOR_EACH(entry, items) {
        CountingSink sink = {0};
        writer.put(sink, entry, 0);
        lengths[entry] = sink.count;
    }
}

// Write the record of each entry (item) to `out`. record_ends: inclusive prefix sum of measure_records.
KERNEL void write_records(Items items, ReadTexts texts, Queries queries, Reference reference,
        const u8* barrier_letters OF(barriers), ContigNames names, RecordPlan plan, Extensions extensions,
        Alignments alignments, const i32* quality_sums OF(any), RecordStyle style, const i64* record_ends OF(items),
        u8* out OF(any)) {
    RecordWriter writer = {
            texts, queries, reference, barrier_letters, names, plan, extensions, alignments, quality_sums, style};
    FOR_EACH(entry, items) {
        i64 start = entry ? record_ends[entry - 1] : 0;
        ByteSink sink = {out + start};
        writer.put(sink, entry, record_ends[entry] - start);
    }
}
