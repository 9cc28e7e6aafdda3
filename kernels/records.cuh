// Records of SAM, as lines of text or in BAM's binary form: one description of a record, and both forms of it.
#pragma once
#include "text.cuh"

enum RecordForm { SAM_TEXT, BAM_BINARY };
enum Flag { UNMAPPED = 4, REVERSED = 16, SECONDARY = 256 };

// What a record says before its tags. Positions are 0-based and half-open on the contig; contig is -1 where there is none.
struct Fields {
    i64 read;  // whose name and letters these are
    i32 flag, mapq;
    i64 contig, position, end;
    const u32* operations;  // as BAM has them: length << 4 | operation
    i32 operation_count;
    i32 length;  // of the letters and qualities, 0 where they are not told
};

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

template <class Sink> HOST_DEVICE void put_text_fields(Sink& sink, const ReadTexts& texts, ContigNames names, const Fields& fields) {
    bool back = fields.flag & REVERSED;
    texts.put_name(sink, fields.read);
    sink.put('\t');
    put_number(sink, fields.flag);
    sink.put('\t');
    if (fields.contig < 0) sink.put('*');
    else names.put(sink, fields.contig);
    sink.put('\t');
    put_number(sink, fields.position + 1);
    sink.put('\t');
    put_number(sink, fields.mapq);
    sink.put('\t');
    if (fields.operation_count == 0) sink.put('*');
    for (i32 i = 0; i < fields.operation_count; ++i) {
        put_number(sink, fields.operations[i] >> 4);
        sink.put((u8)"MIDNS"[fields.operations[i] & 15]);
    }
    sink.copy((const u8*)"\t*\t0\t0\t", 7);
    if (fields.length) sink.bases(texts.bytes + texts.sequence_starts[fields.read], fields.length, back);
    else sink.put('*');
    sink.put('\t');
    i64 quality = texts.quality_starts[fields.read];
    if (fields.length == 0 || quality < 0) sink.put('*');
    else if (back) sink.copy_reversed(texts.bytes + quality, fields.length);
    else sink.copy(texts.bytes + quality, fields.length);
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
    put_integer(sink, -1, 4);
    put_integer(sink, -1, 4);
    put_integer(sink, 0, 4);
    texts.put_name(sink, fields.read);
    sink.put(0);
    for (i32 i = 0; i < fields.operation_count; ++i) put_integer(sink, fields.operations[i], 4);
    if (fields.length) sink.nibbles(texts.bytes + texts.sequence_starts[fields.read], fields.length, back);
    i64 quality = texts.quality_starts[fields.read];
    if (quality < 0) sink.fill(0xFF, fields.length);
    else sink.phreds(texts.bytes + quality, fields.length, back);
}

template <class Sink>
HOST_DEVICE void put_fields(Sink& sink, i32 form, const ReadTexts& texts, ContigNames names, const Fields& fields, i64 size) {
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

// Behind a tag of text, and behind all tags.
template <class Sink> HOST_DEVICE void end_text_tag(Sink& sink, i32 form) {
    if (form == BAM_BINARY) sink.put(0);
}
template <class Sink> HOST_DEVICE void end_record(Sink& sink, i32 form) {
    if (form == SAM_TEXT) sink.put('\n');
}
