// The tags of a BAM record: SAM specification, section 4.2.4.
#pragma once
#include "common/bam_fields.cuh"

// Bytes of a tag's value from its type on; 0 where the type is none, or the value is not all there.
HOST_DEVICE i64 tag_bytes(const u8* value, i64 room) {
    if (room < 2) return 0;
    i64 bytes = 0;
    switch (value[0]) {
        case 'A':
        case 'c':
        case 'C':
            bytes = 2;
            break;
        case 's':
        case 'S':
            bytes = 3;
            break;
        case 'i':
        case 'I':
        case 'f':
            bytes = 5;
            break;
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

// The value of a tag, from its type on; null where the record has none. tag: its two letters, the first one lowest.
HOST_DEVICE const u8* find_tag(const u8* tags, const u8* end, i64 tag) {
    while (end - tags > 3) {
        i64 bytes = tag_bytes(tags + 2, end - tags - 2);
        if (!bytes) return nullptr;
        if (u16_at(tags) == tag) return tags + 2;
        tags += 2 + bytes;
    }
    return nullptr;
}

// A number for the text of a tag, never 0; 0 where the record has no such tag with a text.
HOST_DEVICE u64 hash_tag_text(const u8* tags, const u8* end, i64 tag) {
    const u8* text = find_tag(tags, end, tag);
    if (!text || *text != 'Z') return 0;
    u64 number = 0xCBF29CE484222325ull;  // FNV-1a
    while (*++text) number = (number ^ *text) * 0x100000001B3ull;
    return maximum(number, (u64)1);
}

// The integer of a tag, from its type on; 0 where it is none.
HOST_DEVICE i64 tag_integer(const u8* value) {
    switch (value[0]) {
        case 'c':
            return (i8)value[1];
        case 'C':
            return value[1];
        case 's':
            return (i16)u16_at(value + 1);
        case 'S':
            return u16_at(value + 1);
        case 'i':
            return i32_at(value + 1);
        case 'I':
            return u32_at(value + 1);
    }
    return 0;
}

// Where a number stands among others, as that of a read group's name among the header's; `count` where it does not.
HOST_DEVICE i64 find_index(const u64* numbers, i64 count, u64 number) {
    i64 at = 0;
    while (at < count && numbers[at] != number) ++at;
    return at;
}
