// Write unmapped reads unchanged as FASTQ, or as FASTA without qualities. Mates are written if both are unmapped.
#include "reads/read_headers.cuh"
#include "common/sam_flags.cuh"
#include "common/text.cuh"

struct UnmappedReads {
    ReadTexts texts;
    const i32* lengths OF(reads);
    const i64* line_offsets OF(reads + 1);  // index of the first entry of each read, which is its primary record
    const u16* line_flags OF(any);
    HOST_DEVICE i32 flags(i64 record) const { return line_flags[line_offsets[record]]; }
    HOST_DEVICE bool is_written(i64 record) const {
        if (line_offsets[record] == line_offsets[record + 1]) return false;  // an absent mate
        i32 all = flags(record) & PAIRED ? UNMAPPED | MATE_UNMAPPED : UNMAPPED;
        return (flags(record) & all) == all;
    }
    // Write the name, /1 or /2 for mates, and the comment after a blank.
    template <class Sink> HOST_DEVICE void put_header(Sink& sink, i64 record) const {
        const u8* name = texts.bytes + texts.name_starts[record];
        sink.copy(name, texts.name_lengths[record]);
        if (flags(record) & PAIRED) sink.copy((const u8*)(record & 1 ? "/2" : "/1"), 2);
        TextSpan comment = comment_of(name);
        if (comment.length()) sink.copy(comment.start - 1, comment.length() + 1);
        sink.put('\n');
    }
    template <class Sink> HOST_DEVICE void put(Sink& sink, i64 record) const {
        if (!is_written(record)) return;
        i64 quality = texts.quality_starts[record];
        sink.put(quality < 0 ? '>' : '@');
        put_header(sink, record);
        sink.copy(texts.bytes + texts.sequence_starts[record], lengths[record]);
        sink.put('\n');
        if (quality < 0) return;
        sink.copy((const u8*)"+\n", 2);
        sink.copy(texts.bytes + quality, lengths[record]);
        sink.put('\n');
    }
};

// Compute the bytes of the FASTQ or FASTA record of each read, 0 for a read that is not written.
KERNEL void measure_unmapped(Items items, UnmappedReads reads, i64* lengths_out OF(items)) {
    FOR_EACH(record, items) {
        CountingSink sink = {0};
        reads.put(sink, record);
        lengths_out[record] = sink.count;
    }
}

// Write the FASTQ or FASTA records of unmapped reads. An item is a read; record_ends: inclusive sum of their lengths.
KERNEL void write_unmapped(Items items, UnmappedReads reads, const i64* record_ends OF(items), u8* out OF(any)) {
    FOR_EACH(record, items) {
        ByteSink sink = {out + (record ? record_ends[record - 1] : 0)};
        reads.put(sink, record);
    }
}
