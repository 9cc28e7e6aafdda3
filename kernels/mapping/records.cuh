// Records of SAM, as lines of text or in BAM's binary form: one description of a record, and both forms of it.
#pragma once
#include "common/text.cuh"
#include "mapping/alignments.cuh"
#include "common/sam_flags.cuh"

enum RecordForm { SAM_TEXT, BAM_BINARY };
// What a record says before its tags. Positions are 0-based and half-open on the contig; contig is -1 where there is none.
struct Fields {
    i64 read;  // whose name and letters these are
    i32 flag, mapq;
    i64 contig, position, end;
    const u32* operations;  // as BAM has them: length << 4 | operation
    i32 operation_count;
    i32 length;  // of the letters and qualities that are written, 0 for none
    i32 first;   // of the read's letters, as it was sequenced
    bool hard;   // what the CIGAR clips is not among the letters
    i64 mate_contig, mate_position, template_length;

    // Leaves out the letters that the CIGAR clips.
    HOST_DEVICE void cut_off() {
        Clips clips = clips_of(operations, operation_count);
        hard = true;
        if (length == 0) return;
        length -= clips.left + clips.right;
        first = flag & REVERSED ? clips.right : clips.left;
    }
};

// Of a read that has no place, as far as is known.
HOST_DEVICE Fields no_place(i64 read, i32 flag, i32 length) {
    return Fields{read, flag, 0, -1, -1, 0, nullptr, 0, length, 0, false, -1, -1, 0};
}

// The code of an operation in a record: clipped letters may be cut off.
HOST_DEVICE u32 written(u32 operation, bool hard) {
    return hard && (operation & 15) == CLIPPED ? operation + CUT_OFF - CLIPPED : operation;
}

template <class Sink> HOST_DEVICE void put_cigar(Sink& sink, const u32* operations, i32 count, bool hard) {
    for (i32 i = 0; i < count; ++i) {
        put_number(sink, operations[i] >> 4);
        sink.put((u8) "MIDNSH"[written(operations[i], hard) & 15]);
    }
}

template <class Sink> HOST_DEVICE void put_integer(Sink& sink, i64 value, i32 bytes) {
    for (i32 i = 0; i < bytes; ++i) sink.put((u8)(value >> (8 * i)));
}

// The smallest bin of the BAI index that holds [begin, end); of a record without a place as of [-1, 0).
HOST_DEVICE i32 index_bin(i64 begin, i64 end) {
    --end;
    for (i32 shift = 14, first = 4681; shift < 29; shift += 3, first >>= 3)
        if (begin >> shift == end >> shift) return (i32)(first + (begin >> shift));
    return 0;
}

template <class Sink>
HOST_DEVICE void put_text_fields(Sink& sink, const ReadTexts& texts, ContigNames names, const Fields& fields) {
    bool back = fields.flag & REVERSED;
    texts.put_name(sink, fields.read);
    put_column(sink, fields.flag);
    sink.put('\t');
    if (fields.contig < 0) sink.put('*');
    else names.put(sink, fields.contig);
    put_column(sink, fields.position + 1);
    put_column(sink, fields.mapq);
    sink.put('\t');
    if (fields.operation_count == 0) sink.put('*');
    put_cigar(sink, fields.operations, fields.operation_count, fields.hard);
    sink.put('\t');
    if (fields.mate_contig < 0) sink.put('*');
    else if (fields.mate_contig == fields.contig) sink.put('=');
    else names.put(sink, fields.mate_contig);
    put_column(sink, fields.mate_position + 1);
    put_column(sink, fields.template_length);
    sink.put('\t');
    if (fields.length) sink.bases(texts.bytes + texts.sequence_starts[fields.read] + fields.first, fields.length, back);
    else sink.put('*');
    sink.put('\t');
    i64 quality = texts.quality_starts[fields.read];
    const u8* phreds = texts.bytes + quality + fields.first;
    if (fields.length == 0 || quality < 0) sink.put('*');
    else if (back) sink.copy_reversed(phreds, fields.length);
    else sink.copy(phreds, fields.length);
}

// size: of the whole record, with its tags.
template <class Sink>
HOST_DEVICE void put_binary_fields(Sink& sink, const ReadTexts& texts, const Fields& fields, i64 size) {
    bool back = fields.flag & REVERSED;
    i32 name = maximum(texts.name_lengths[fields.read], 1);
    put_integer(sink, size - 4, 4);
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
    texts.put_name(sink, fields.read);
    sink.put(0);
    for (i32 i = 0; i < fields.operation_count; ++i) put_integer(sink, written(fields.operations[i], fields.hard), 4);
    if (fields.length)
        sink.nibbles(texts.bytes + texts.sequence_starts[fields.read] + fields.first, fields.length, back);
    i64 quality = texts.quality_starts[fields.read];
    if (quality < 0) sink.fill(0xFF, fields.length);
    else sink.phreds(texts.bytes + quality + fields.first, fields.length, back);
}

template <class Sink> HOST_DEVICE void put_fields(Sink& sink, i32 form, const ReadTexts& texts, ContigNames names,
                                                  const Fields& fields, i64 size) {
    if (form == BAM_BINARY) put_binary_fields(sink, texts, fields, size);
    else put_text_fields(sink, texts, names, fields);
}

template <class Sink> HOST_DEVICE void put_tag_name(Sink& sink, i32 form, char a, char b, char type) {
    if (form == SAM_TEXT) sink.put('\t');
    sink.put((u8)a);
    sink.put((u8)b);
    if (form == SAM_TEXT) sink.put(':');
    sink.put((u8)type);
    if (form == SAM_TEXT) sink.put(':');
}

// The value is not negative.
template <class Sink> HOST_DEVICE void put_number_tag(Sink& sink, i32 form, char a, char b, i64 value) {
    if (form == SAM_TEXT) {
        put_tag_name(sink, form, a, b, 'i');
        put_number(sink, value);
        return;
    }
    i32 bytes = value < 256 ? 1 : value < 65536 ? 2 : 4;
    put_tag_name(sink, form, a, b, bytes == 1 ? 'C' : bytes == 2 ? 'S' : 'I');
    put_integer(sink, value, bytes);
}

// The float nearest to so many thousandths, by integers alone.
HOST_DEVICE u32 float_of_permille(i64 permille) {
    if (permille == 0) return 0;
    i32 shift = 0;
    while ((permille << shift) / 1000 < 1 << 23) ++shift;
    i64 mantissa = (permille << shift) / 1000, rest = 2 * ((permille << shift) % 1000);
    mantissa += rest > 1000 || (rest == 1000 && mantissa & 1);
    return (u32)(((i64)(150 - shift) << 23) + mantissa - (1 << 23));
}

// The share of a whole that a part is, as a float of three decimals.
template <class Sink> HOST_DEVICE void put_share_tag(Sink& sink, i32 form, char a, char b, i64 part, i64 whole) {
    i64 permille = (2000 * part + whole) / (2 * maximum(whole, (i64)1));
    put_tag_name(sink, form, a, b, 'f');
    if (form == SAM_TEXT) {
        put_number(sink, permille / 1000);
        sink.put('.');
        for (i64 unit = 100; unit; unit /= 10) sink.put((u8)('0' + permille / unit % 10));
        return;
    }
    put_integer(sink, float_of_permille(permille), 4);
}

// Behind a tag of text, and behind all tags.
template <class Sink> HOST_DEVICE void end_text_tag(Sink& sink, i32 form) {
    if (form == BAM_BINARY) sink.put(0);
}
template <class Sink> HOST_DEVICE void end_record(Sink& sink, i32 form) {
    if (form == SAM_TEXT) sink.put('\n');
}
