// SAM tags that stand behind a read's name, in both forms of a record.
#pragma once
#include "reads/comments.cuh"
#include "mapping/records.cuh"

// Tags that readmap writes itself; RG only where the option -R gives it, and RX where the read's name does.
HOST_DEVICE bool is_own_tag(const u8* tag, bool has_read_group, bool has_barcode) {
    const char* own = "NMMDASXSSAXAMCMQmsPG";
    for (i32 i = 0; i < 20; i += 2)
        if (tag[0] == (u8)own[i] && tag[1] == (u8)own[i + 1]) return true;
    return tag[0] == 'R' && ((has_read_group && tag[1] == 'G') || (has_barcode && tag[1] == 'X'));
}

HOST_DEVICE u32 float_bits(double value) {
    union {
        float value;
        u32 bits;
    } single = {(float)value};
    return single.bits;
}

// The smallest type that holds it, as htslib chooses.
HOST_DEVICE u8 smallest_type(i64 value) {
    if (value < 0) return value >= -128 ? 'c' : value >= -32768 ? 's' : 'i';
    return value < 256 ? 'C' : value < 65536 ? 'S' : 'I';
}

template <class Sink> HOST_DEVICE void put_element(Sink& sink, u8 type, TextSpan text) {
    if (type == 'f') put_integer(sink, float_bits(parse_decimal(text).value), 4);
    else put_integer(sink, parse_integer(text).value, integer_type(type).bytes);
}

template <class Sink> HOST_DEVICE void put_binary_array(Sink& sink, TextSpan value) {
    i64 count = 0;
    for (const u8* at = value.start; at < value.end; ++at) count += *at == ',';
    u8 type = *value.take_until(',').start;
    sink.put(type);
    put_integer(sink, count, 4);
    for (; count; --count) put_element(sink, type, value.take_until(','));
}

template <class Sink> HOST_DEVICE void put_binary_tag(Sink& sink, TextSpan tag) {
    TextSpan value = tag.after(5);
    u8 letter = tag.start[3], type = letter == 'i' ? smallest_type(parse_integer(value).value) : letter;
    sink.copy(tag.start, 2);
    sink.put(type);
    if (letter == 'B') put_binary_array(sink, value);
    else if (letter == 'i' || letter == 'f') put_element(sink, type, value);
    else sink.copy(value.start, value.length());
    if (letter == 'Z' || letter == 'H') sink.put(0);
}

// The barcode in a name, its eighth field, as bcl-convert has it; empty where there is none.
HOST_DEVICE TextSpan barcode_of(TextSpan name) {
    for (i32 field = 0; field < 7; ++field) name.take_until(':');
    return name.take_until(':');
}

// As RX has it: two barcodes are joined by a minus, not by a plus.
template <class Sink> HOST_DEVICE void put_barcode_tag(Sink& sink, i32 form, TextSpan barcode) {
    put_tag_name(sink, form, 'R', 'X', 'Z');
    for (const u8* at = barcode.start; at < barcode.end; ++at) sink.put(*at == '+' ? '-' : *at);
    end_text_tag(sink, form);
}

// The tags of a comment, all that are not readmap's own; has_read_group, has_barcode: whether RG and RX are. Of Illumina's
// the sample's index, as samtools import -i has it. One of the two it must be.
template <class Sink>
HOST_DEVICE void put_comment_tags(Sink& sink, i32 form, TextSpan comment, bool has_read_group, bool has_barcode) {
    IlluminaComment illumina = illumina_comment(comment);
    if (illumina.is_valid) {
        if (!illumina.index.length()) return;
        put_tag_name(sink, form, 'B', 'C', 'Z');
        sink.copy(illumina.index.start, illumina.index.length());
        end_text_tag(sink, form);
        return;
    }
    while (comment.length()) {
        TextSpan tag = comment.take_until('\t');
        if (is_own_tag(tag.start, has_read_group, has_barcode)) continue;
        if (form == BAM_BINARY) {
            put_binary_tag(sink, tag);
            continue;
        }
        sink.put('\t');
        sink.copy(tag.start, tag.length());
    }
}
