// Write records of SAM as lines of text or in the binary form of BAM, from one description of a record.
#pragma once
#include "common/text.cuh"
#include "mapping/alignments.cuh"
#include "common/sam_flags.cuh"

enum RecordEncoding { SAM_TEXT, BAM_BINARY };
// The fields of a record before its tags. Positions are 0-based and half-open on the contig; contig is -1 if missing.
struct RecordFields {
    i64 read;  // read with the name, bases and qualities of the record
    i32 flag, mapq;
    i64 contig, position, end;
    const u32* operations;  // length << 4 | operation, as in BAM
    i32 operation_count;
    i32 length;  // number of bases and qualities written, 0 for none
    i32 first;   // index of the first base written, in the read as sequenced
    bool hard;   // clipped bases are not written: hard clipping
    i64 mate_contig, mate_position, template_length;
    // Leave out the bases that the CIGAR clips.
    HOST_DEVICE void hard_clip() {
        Clips clips = clips_of(operations, operation_count);
        hard = true;
        if (length == 0) return;
        length -= clips.left + clips.right;
        first = flag & REVERSED ? clips.right : clips.left;
    }
};

// Return the fields of an unmapped read.
HOST_DEVICE RecordFields unmapped_fields(i64 read, i32 flag, i32 length) {
    return RecordFields{read, flag, 0, -1, -1, 0, nullptr, 0, length, 0, false, -1, -1, 0};
}
// Return the BAM code of an operation: soft clipping becomes hard clipping if `hard`.
HOST_DEVICE u32 operation_code(u32 operation, bool hard) {
    return hard && (operation & 15) == CLIPPED ? operation + HARD_CLIPPED - CLIPPED : operation;
}
// Write a CIGAR of `count` operations as text, with H in place of S if `hard`.
template <class Sink> HOST_DEVICE void put_cigar(Sink& sink, const u32* operations, i32 count, bool hard) {
    for (i32 i = 0; i < count; ++i) {
        put_number(sink, operations[i] >> 4);
        sink.put((u8) "MIDNSH"[operation_code(operations[i], hard) & 15]);
    }
}

// Write the low `bytes` bytes of an integer, little-endian.
template <class Sink> HOST_DEVICE void put_integer(Sink& sink, i64 value, i32 bytes) {
    for (i32 i = 0; i < bytes; ++i) sink.put((u8)(value >> (8 * i)));
}
// Return the smallest bin of the BAI index that contains [start, end); an unmapped record is treated as [-1, 0).
HOST_DEVICE i32 index_bin(i64 start, i64 end) {
    --end;
    for (i32 shift = 14, first = 4681; shift < 29; shift += 3, first >>= 3)
        if (start >> shift == end >> shift) return (i32)(first + (start >> shift));
    return 0;
}

// Write the eleven fields of a SAM line before its tags.
template <class Sink> HOST_DEVICE void put_text_fields(
        Sink& sink, const ReadTexts& texts, ContigNames contig_names, const RecordFields& fields) {
    bool reversed = fields.flag & REVERSED;
    texts.put_name(sink, fields.read);
    put_column(sink, fields.flag);
    sink.put('\t');
    if (fields.contig < 0) sink.put('*');
    else contig_names.put(sink, fields.contig);
    put_column(sink, fields.position + 1);
    put_column(sink, fields.mapq);
    sink.put('\t');
    if (fields.operation_count == 0) sink.put('*');
    put_cigar(sink, fields.operations, fields.operation_count, fields.hard);
    sink.put('\t');
    if (fields.mate_contig < 0) sink.put('*');
    else if (fields.mate_contig == fields.contig) sink.put('=');
    else contig_names.put(sink, fields.mate_contig);
    put_column(sink, fields.mate_position + 1);
    put_column(sink, fields.template_length);
    sink.put('\t');
    if (fields.length)
        sink.bases(texts.bytes + texts.sequence_starts[fields.read] + fields.first, fields.length, reversed);
    else sink.put('*');
    sink.put('\t');
    i64 quality = texts.quality_starts[fields.read];
    const u8* phreds = texts.bytes + quality + fields.first;
    if (fields.length == 0 || quality < 0) sink.put('*');
    else if (reversed) sink.copy_reversed(phreds, fields.length);
    else sink.copy(phreds, fields.length);
}

// Write the fields of a BAM record before its tags. record_bytes: size of the whole record with its tags.
template <class Sink> HOST_DEVICE void put_binary_fields(
        Sink& sink, const ReadTexts& read_texts, const RecordFields& fields, i64 record_bytes) {
    bool reversed = fields.flag & REVERSED;
    i32 name = maximum(read_texts.name_lengths[fields.read], 1);
    put_integer(sink, record_bytes - 4, 4);
    put_integer(sink, fields.contig, 4);
    put_integer(sink, fields.position, 4);
    put_integer(sink, name + 1, 1);
    put_integer(sink, fields.mapq, 1);
    put_integer(sink, index_bin(fields.position, fields.end), 2);
    put_integer(sink, fields.operation_count, 2);
    put_integer(sink, fields.flag, 2);
    put_integer(sink, fields.length, 4);
    put_integer(sink, fields.mate_contig, 4);
    put_integer(sink, fields.mate_position, 4);
    put_integer(sink, fields.template_length, 4);
    read_texts.put_name(sink, fields.read);
    sink.put(0);
    for (i32 i = 0; i < fields.operation_count; ++i)
        put_integer(sink, operation_code(fields.operations[i], fields.hard), 4);
    if (fields.length)
        sink.nibbles(
                read_texts.bytes + read_texts.sequence_starts[fields.read] + fields.first, fields.length, reversed);
    i64 quality = read_texts.quality_starts[fields.read];
    if (quality < 0) sink.fill(0xFF, fields.length);
    else sink.phreds(read_texts.bytes + quality + fields.first, fields.length, reversed);
}

// Write the fields of a record before its tags. encoding: a RecordEncoding; size: bytes of the whole record, for BAM.
template <class Sink> HOST_DEVICE void put_fields(
        Sink& sink, i32 encoding, const ReadTexts& texts, ContigNames names, const RecordFields& fields, i64 size) {
    if (encoding == BAM_BINARY) put_binary_fields(sink, texts, fields, size);
    else put_text_fields(sink, texts, names, fields);
}

// Start a tag: write its letters a and b and its type, in SAM with a tab and colons.
template <class Sink> HOST_DEVICE void put_tag_name(Sink& sink, i32 encoding, char a, char b, char type) {
    if (encoding == SAM_TEXT) sink.put('\t');
    sink.put((u8)a);
    sink.put((u8)b);
    if (encoding == SAM_TEXT) sink.put(':');
    sink.put((u8)type);
    if (encoding == SAM_TEXT) sink.put(':');
}

// Write an integer tag; the value must not be negative.
template <class Sink> HOST_DEVICE void put_number_tag(Sink& sink, i32 encoding, char a, char b, i64 value) {
    if (encoding == SAM_TEXT) {
        put_tag_name(sink, encoding, a, b, 'i');
        put_number(sink, value);
        return;
    }
    i32 bytes = value < 256 ? 1 : value < 65536 ? 2 : 4;
    put_tag_name(sink, encoding, a, b, bytes == 1 ? 'C' : bytes == 2 ? 'S' : 'I');
    put_integer(sink, value, bytes);
}

// Return the bits of the float nearest to permille / 1000, computed with integers only.
HOST_DEVICE u32 float_of_permille(i64 permille) {
    if (permille == 0) return 0;
    i32 shift = 0;
    while ((permille << shift) / 1000 < 1 << 23) ++shift;
    i64 mantissa = (permille << shift) / 1000, rest = 2 * ((permille << shift) % 1000);
    mantissa += rest > 1000 || (rest == 1000 && mantissa & 1);
    return (u32)(((i64)(150 - shift) << 23) + mantissa - (1 << 23));
}

// Write part / whole, rounded to three decimals, as a float tag with the letters a and b.
template <class Sink> HOST_DEVICE void put_share_tag(Sink& sink, i32 encoding, char a, char b, i64 part, i64 whole) {
    i64 permille = (2000 * part + whole) / (2 * maximum(whole, (i64)1));
    put_tag_name(sink, encoding, a, b, 'f');
    if (encoding == SAM_TEXT) {
        put_number(sink, permille / 1000);
        sink.put('.');
        for (i64 unit = 100; unit; unit /= 10) sink.put((u8)('0' + permille / unit % 10));
        return;
    }
    put_integer(sink, float_of_permille(permille), 4);
}

// End a tag of type Z: write a NUL in BAM, nothing in SAM.
template <class Sink> HOST_DEVICE void end_text_tag(Sink& sink, i32 encoding) {
    if (encoding == BAM_BINARY) sink.put(0);
}
template <class Sink> HOST_DEVICE void end_record(Sink& sink, i32 encoding) {  // a newline in SAM, nothing in BAM
    if (encoding == SAM_TEXT) sink.put('\n');
}
