// Copy SAM tags from the comment of a read name to its record, as text or binary.
#pragma once
#include "reads/read_headers.cuh"
#include "mapping/records.cuh"

// Return true for tags (two letters) that readmap writes: RG only with a read group, RX only with a barcode.
HOST_DEVICE bool is_own_tag(const u8* tag, bool has_read_group, bool has_barcode) {
    const char* own = "NMMDASXSSAXAMCMQmsPG";
    for (i32 i = 0; i < 20; i += 2)
        if (tag[0] == (u8)own[i] && tag[1] == (u8)own[i + 1]) return true;
    return tag[0] == 'R' && ((has_read_group && tag[1] == 'G') || (has_barcode && tag[1] == 'X'));
}

HOST_DEVICE u32 float_bits(double value) {  // bits of the nearest float
    union {
        float value;
        u32 bits;
    } single = {(float)value};
    return single.bits;
}

// Return the letter of the smallest BAM integer type that holds the value, as htslib does.
HOST_DEVICE u8 smallest_type(i64 value) {
    if (value < 0) return value >= -128 ? 'c' : value >= -32768 ? 's' : 'i';
    return value < 256 ? 'C' : value < 65536 ? 'S' : 'I';
}

// Write a number, given as text, in the binary form of a BAM type, given by its letter.
template <class Sink> HOST_DEVICE void put_element(Sink& sink, u8 type, TextSpan text) {
    if (type == 'f') put_integer(sink, float_bits(parse_decimal(text).value), 4);
    else put_integer(sink, parse_integer(text).value, integer_type(type).bytes);
}

// Write the value of a SAM tag of type B, an element type and numbers after commas, in BAM's form.
template <class Sink> HOST_DEVICE void put_binary_array(Sink& sink, TextSpan value) {
    i64 count = 0;
    for (const u8* at = value.start; at < value.end; ++at) count += *at == ',';
    u8 type = *value.take_until(',').start;
    sink.put(type);
    put_integer(sink, count, 4);
    for (; count; --count) put_element(sink, type, value.take_until(','));
}

// Write a SAM tag, NAME:TYPE:VALUE, in BAM's form.
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

// Return the barcode in a read name, the eighth field as written by bcl-convert, or an empty span.
HOST_DEVICE TextSpan barcode_of(TextSpan name) {
    for (i32 field = 0; field < 7; ++field) name.take_until(':');
    return name.take_until(':');
}

// Write the tag RX with the barcode of a read name. Two barcodes are joined by a minus, not by a plus.
template <class Sink> HOST_DEVICE void put_barcode_tag(Sink& sink, i32 encoding, TextSpan barcode) {
    put_tag_name(sink, encoding, 'R', 'X', 'Z');
    for (const u8* at = barcode.start; at < barcode.end; ++at) sink.put(*at == '+' ? '-' : *at);
    end_text_tag(sink, encoding);
}

// Write the tags of a comment except those that readmap writes itself. For an Illumina comment, write the sample index
// as BC, as samtools import -i does. The comment must have one of these two forms.
template <class Sink> HOST_DEVICE void put_comment_tags(
        Sink& sink, i32 encoding, TextSpan name_comment, bool has_read_group, bool has_barcode) {
    IlluminaComment illumina = illumina_comment(name_comment);
    if (illumina.is_valid) {
        if (!illumina.index.length()) return;
        put_tag_name(sink, encoding, 'B', 'C', 'Z');
        sink.copy(illumina.index.start, illumina.index.length());
        end_text_tag(sink, encoding);
        return;
    }
    while (name_comment.length()) {
        TextSpan tag = name_comment.take_until('\t');
        if (is_own_tag(tag.start, has_read_group, has_barcode)) continue;
        if (encoding == BAM_BINARY) {
            put_binary_tag(sink, tag);
            continue;
        }
        sink.put('\t');
        sink.copy(tag.start, tag.length());
    }
}
