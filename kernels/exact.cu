// The lines of an exact search: SAM records, tables of places or of counts, BED.
#include "occurrences.cuh"
#include "text.cuh"

enum LineFormat { SAM, TSV, BED, COUNTS };

#define LINE_ARGUMENTS                                                                                                 \
    READ_TEXT_ARGUMENTS, const i32 *read_lengths, OCCURRENCE_ARGUMENTS, REFERENCE_ARGUMENTS, const suffix_t *suffixes, \
        CONTIG_NAME_ARGUMENTS, const u8 *read_group, i64 read_group_length, i64 most_hits, i32 format

struct Lines {
    ReadTexts texts;
    const i32* lengths;
    Occurrences occurrences;
    Reference reference;
    const suffix_t* suffixes;
    ContigNames names;
    const u8* read_group;
    i64 read_group_length, most_hits;
    i32 format;

    // A record that occurs nowhere has a line all the same, but in BED, which has nothing to say of it.
    HOST_DEVICE i64 count(i64 record) const {
        if (format == COUNTS) return 1;
        i64 hits = minimum(occurrences.total(record), most_hits);
        return format == BED ? hits : maximum(hits, (i64)1);
    }
    HOST_DEVICE static i32 mapq(i64 total) { return total == 1 ? 60 : total == 2 ? 3 : total <= 4 ? 1 : 0; }

    template <class Sink> HOST_DEVICE void put_sam(Sink& sink, i64 record, i64 hit, i64 total) const {
        texts.put_name(sink, record);
        sink.put('\t');
        if (total == 0) {
            sink.copy((const u8*)"4\t*\t0\t0\t*\t*\t0\t0\t", 16);
            texts.put_letters(sink, record, lengths[record], false);
            sink.copy(read_group, read_group_length);
            return;
        }
        Occurrence found = occurrences.get(record, hit, suffixes);
        i64 contig = reference.contig_of(found.place);
        put_number(sink, (hit ? 256 : 0) + (found.reversed ? 16 : 0));
        sink.put('\t');
        names.put(sink, contig);
        sink.put('\t');
        put_number(sink, found.place - reference.contig_starts[contig] + 1);
        sink.put('\t');
        put_number(sink, mapq(total));
        sink.put('\t');
        put_number(sink, lengths[record]);
        sink.copy((const u8*)"M\t*\t0\t0\t", 8);
        if (hit) sink.copy((const u8*)"*\t*", 3);
        else texts.put_letters(sink, record, lengths[record], found.reversed);
        put_tag(sink, 'N', 'M', 'i');
        sink.put('0');
        put_tag(sink, 'M', 'D', 'Z');
        put_number(sink, lengths[record]);
        put_tag(sink, 'N', 'H', 'i');
        put_number(sink, total);
        put_tag(sink, 'H', 'I', 'i');
        put_number(sink, hit + 1);
        sink.copy(read_group, read_group_length);
    }
    template <class Sink> HOST_DEVICE void put_table(Sink& sink, i64 record, i64 hit, i64 total) const {
        texts.put_name(sink, record);
        sink.put('\t');
        put_number(sink, total);
        if (format == COUNTS) return;
        if (total == 0) {
            sink.copy((const u8*)"\t*\t*\t*\t*", 8);
            return;
        }
        Occurrence found = occurrences.get(record, hit, suffixes);
        i64 contig = reference.contig_of(found.place), start = found.place - reference.contig_starts[contig];
        sink.put('\t');
        names.put(sink, contig);
        sink.put('\t');
        put_number(sink, start + 1);
        sink.put('\t');
        put_number(sink, start + lengths[record]);
        sink.put('\t');
        sink.put(found.reversed ? '-' : '+');
    }
    template <class Sink> HOST_DEVICE void put_bed(Sink& sink, i64 record, i64 hit, i64 total) const {
        Occurrence found = occurrences.get(record, hit, suffixes);
        i64 contig = reference.contig_of(found.place), start = found.place - reference.contig_starts[contig];
        names.put(sink, contig);
        sink.put('\t');
        put_number(sink, start);
        sink.put('\t');
        put_number(sink, start + lengths[record]);
        sink.put('\t');
        texts.put_name(sink, record);
        sink.put('\t');
        put_number(sink, mapq(total));
        sink.put('\t');
        sink.put(found.reversed ? '-' : '+');
    }
    template <class Sink> HOST_DEVICE void put(Sink& sink, i64 record, i64 hit) const {
        i64 total = occurrences.total(record);
        if (format == SAM) put_sam(sink, record, hit, total);
        else if (format == BED) put_bed(sink, record, hit, total);
        else put_table(sink, record, hit, total);
        sink.put('\n');
    }
};

#define LINES                                                                                                          \
    Lines {                                                                                                            \
        READ_TEXTS, read_lengths, OCCURRENCES, REFERENCE, suffixes, CONTIG_NAMES, read_group, read_group_length,       \
            most_hits, format                                                                                          \
    }

// An item is a record: how many lines it has.
KERNEL void count_lines(i64 begin, i64 end, LINE_ARGUMENTS, i64* counts_out) {
    Lines lines = LINES;
    FOR_EACH(record, begin, end) counts_out[record] = lines.count(record);
}

// An item is a line, counted from first_line on; line_ends[record] counts those up to and with a record's.
KERNEL void measure_lines(i64 begin, i64 end, LINE_ARGUMENTS, const i64* line_ends, i64* lengths_out, i64 record_count,
                          i64 first_line) {
    Lines lines = LINES;
    i64 record = -1;
    FOR_EACH(item, begin, end) {
        record = owner(line_ends, record_count, first_line + item, record);
        CountingSink sink = {0};
        lines.put(sink, record, first_line + item - (record ? line_ends[record - 1] : 0));
        lengths_out[item] = sink.count;
    }
}

// byte_ends: the inclusive prefix sum of what measure_lines gave.
KERNEL void write_lines(i64 begin, i64 end, LINE_ARGUMENTS, const i64* line_ends, const i64* byte_ends, u8* out,
                        i64 record_count, i64 first_line) {
    Lines lines = LINES;
    i64 record = -1;
    FOR_EACH(item, begin, end) {
        record = owner(line_ends, record_count, first_line + item, record);
        ByteSink sink = {out + (item ? byte_ends[item - 1] : 0)};
        lines.put(sink, record, first_line + item - (record ? line_ends[record - 1] : 0));
    }
}
