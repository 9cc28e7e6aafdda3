// Write the lines of an exact search: SAM or BAM records, tables of occurrences or of counts, or BED.
#include "index/occurrences.cuh"
#include "index/suffix_array.cuh"
#include "mapping/records.cuh"

enum LineFormat { SAM = SAM_TEXT, BAM = BAM_BINARY, TSV, BED, COUNTS };

struct Lines {
    ReadTexts texts;
    const i32* lengths OF(reads);
    const u8* marks OF(reads);
    Occurrences occurrences;
    Reference reference;
    SuffixArray index;
    ContigNames names;
    const u8* common_tags OF(common_tags_length);
    i64 common_tags_length, max_hits;
    i32 format;
    // Return the number of lines of a read. A read without occurrences has one line, except in BED.
    HOST_DEVICE i64 count(i64 record) const {
        if (format == COUNTS) return 1;
        i64 hits = minimum(occurrences.total(record), max_hits);
        return format == BED ? hits : maximum(hits, (i64)1);
    }
    HOST_DEVICE static i32 mapq(i64 total) { return total == 1 ? 60 : total == 2 ? 3 : total <= 4 ? 1 : 0; }
    template <class Sink> HOST_DEVICE void put_record(Sink& sink, i64 record, i64 hit, i64 total, i64 size) const {
        i32 length = lengths[record];
        u32 matched = (u32)length << 4;
        RecordFields fields = unmapped_fields(record, UNMAPPED, length);
        if (total) {
            Occurrence found = occurrences.get(record, hit, index.suffixes);
            i64 contig = reference.contig_of(found.position), start = found.position - reference.contig_starts[contig];
            fields.flag = (hit ? SECONDARY : 0) | (found.reversed ? REVERSED : 0);
            fields.mapq = mapq(total);
            fields.contig = contig, fields.position = start, fields.end = start + length;
            fields.operations = &matched, fields.operation_count = 1;
            if (hit) fields.length = 0;
        }
        if (marks[record] & READ_FAILED) fields.flag |= QC_FAILED;
        put_fields(sink, format, texts, names, fields, size);
        if (total) {
            put_number_tag(sink, format, 'N', 'M', 0);
            put_tag_name(sink, format, 'M', 'D', 'Z');
            put_number(sink, length);
            end_text_tag(sink, format);
            put_number_tag(sink, format, 'N', 'H', total);
            put_number_tag(sink, format, 'H', 'I', hit + 1);
        }
        sink.copy(common_tags, common_tags_length);
    }
    template <class Sink> HOST_DEVICE void put_table(Sink& sink, i64 record, i64 hit, i64 total) const {
        texts.put_name(sink, record);
        put_column(sink, total);
        if (format == COUNTS) return;
        if (total == 0) {
            sink.copy((const u8*)"\t*\t*\t*\t*", 8);
            return;
        }
        Occurrence found = occurrences.get(record, hit, index.suffixes);
        i64 contig = reference.contig_of(found.position), start = found.position - reference.contig_starts[contig];
        sink.put('\t');
        names.put(sink, contig);
        put_column(sink, start + 1);
        put_column(sink, start + lengths[record]);
        sink.put('\t');
        sink.put(found.reversed ? '-' : '+');
    }
    template <class Sink> HOST_DEVICE void put_bed(Sink& sink, i64 record, i64 hit, i64 total) const {
        Occurrence found = occurrences.get(record, hit, index.suffixes);
        i64 contig = reference.contig_of(found.position), start = found.position - reference.contig_starts[contig];
        names.put(sink, contig);
        put_column(sink, start);
        put_column(sink, start + lengths[record]);
        sink.put('\t');
        texts.put_name(sink, record);
        put_column(sink, mapq(total));
        sink.put('\t');
        sink.put(found.reversed ? '-' : '+');
    }
    template <class Sink> HOST_DEVICE void put(Sink& sink, i64 record, i64 hit, i64 size) const {
        i64 total = occurrences.total(record);
        if (format == SAM || format == BAM) put_record(sink, record, hit, total, size);
        else if (format == BED) put_bed(sink, record, hit, total);
        else put_table(sink, record, hit, total);
        if (format != BAM) sink.put('\n');
    }
};

// Count the lines to write for each read: its occurrences up to max_hits, and at least one, except in BED.
KERNEL void count_lines(Items items, Lines lines, i64* counts_out OF(items)) {
    FOR_EACH(record, items) counts_out[record] = lines.count(record);
}

// Compute the bytes of each line. An item is a line, counted from first_line; line_ends: inclusive sum of count_lines.
KERNEL void measure_lines(Items items, Lines lines, const i64* line_ends OF(record_count), i64* lengths_out OF(items),
        i64 record_count, i64 first_line) {
    i64 record = -1;
    FOR_EACH(item, items) {
        record = record_of_item(line_ends, record_count, first_line + item, record);
        CountingSink sink = {0};
        lines.put(sink, record, first_line + item - (record ? line_ends[record - 1] : 0), 0);
        lengths_out[item] = sink.count;
    }
}

// Write each line (item) to `out`. line_ends: as in measure_lines; byte_ends: inclusive sum of its lengths.
KERNEL void write_lines(Items items, Lines lines, const i64* line_ends OF(record_count), const i64* byte_ends OF(items),
        u8* out OF(any), i64 record_count, i64 first_line) {
    i64 record = -1;
    FOR_EACH(item, items) {
        record = record_of_item(line_ends, record_count, first_line + item, record);
        i64 start = item ? byte_ends[item - 1] : 0;
        ByteSink sink = {out + start};
        lines.put(sink, record, first_line + item - (record ? line_ends[record - 1] : 0), byte_ends[item] - start);
    }
}
