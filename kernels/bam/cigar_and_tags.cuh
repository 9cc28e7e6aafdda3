// CIGAR operations and tags of a BAM record (SAM specification, sections 1.4.6, 4.2 and 4.2.4).
#pragma once
#include "common/bam_fields.cuh"

enum CigarOperation { MATCH, INSERTION, DELETION, SKIP, SOFT_CLIP, HARD_CLIP, PADDING, EQUAL, DIFFERENT };

// Return true if a CigarOperation aligns read bases to reference bases.
HOST_DEVICE bool is_aligned(i64 kind) { return kind == MATCH || kind == EQUAL || kind == DIFFERENT; }
HOST_DEVICE bool covers_reference(i64 kind) { return is_aligned(kind) || kind == DELETION || kind == SKIP; }
// Return the bytes of a tag's type and value, or 0 if the type, value[0], is invalid or `room` bytes are too few.
HOST_DEVICE i64 tag_bytes(const u8* value, i64 room) {
    if (room < 2) return 0;
    i64 bytes = 0;
    switch (value[0]) {
        case 'A':
        case 'c':
        case 'C': bytes = 2; break;
        case 's':
        case 'S': bytes = 3; break;
        case 'i':
        case 'I':
        case 'f': bytes = 5; break;
        case 'Z':
        case 'H':
            bytes = 1;
            while (bytes < room && value[bytes]) ++bytes;
            ++bytes;
            break;
        case 'B':
            if (room >= 6) {
                u8 type = value[1];
                i64 width = type == 'c' || type == 'C' ? 1 : type == 's' || type == 'S' ? 2 : 4;
                bytes = 6 + width * (i64)u32_at(value + 2);
            }
            break;
    }
    return bytes <= room ? bytes : 0;
}

// Return the address of the type byte and value of a tag, or null. tag: its two letters, the first in the low byte.
HOST_DEVICE const u8* find_tag(const u8* tags, const u8* end, i64 tag) {
    while (end - tags > 3) {
        i64 bytes = tag_bytes(tags + 2, end - tags - 2);
        if (!bytes) return nullptr;
        if (u16_at(tags) == tag) return tags + 2;
        tags += 2 + bytes;
    }
    return nullptr;
}

// Return a nonzero hash (FNV-1a) of the text of a Z tag among the tags [tags, end), or 0 if the tag is missing.
HOST_DEVICE u64 hash_tag_text(const u8* tags, const u8* end, i64 tag) {
    const u8* text = find_tag(tags, end, tag);
    if (!text || *text != 'Z') return 0;
    u64 hash = 0xCBF29CE484222325ull;
    while (*++text) hash = (hash ^ *text) * 0x100000001B3ull;
    return maximum(hash, (u64)1);
}

// Return the value of an integer tag, or 0 for a tag of another type. value: address of its type byte.
HOST_DEVICE i64 tag_integer(const u8* value) {
    switch (value[0]) {
        case 'c': return (i8)value[1];
        case 'C': return value[1];
        case 's': return (i16)u16_at(value + 1);
        case 'S': return u16_at(value + 1);
        case 'i': return i32_at(value + 1);
        case 'I': return u32_at(value + 1);
    }
    return 0;
}

// Return the index of the first element that equals `number`, or `count` if no element does.
HOST_DEVICE i64 find_index(const u64* numbers, i64 count, u64 number) {
    i64 at = 0;
    while (at < count && numbers[at] != number) ++at;
    return at;
}
