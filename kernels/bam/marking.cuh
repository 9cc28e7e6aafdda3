// Records that are stored_length with the number of their fragment behind them, until it is known which fragments are duplicates. The
// number is a tag, so that it may stay where that is known only when other files are there too.
#pragma once
#include "common/bam_fields.cuh"
#include "common/sam_flags.cuh"

// Of a fragment.
enum Mark { DUPLICATE = 1, OPTICAL = 2 };

const i64 TYPE_TAG_BYTES = 6;    // DT:Z:LB or SQ
const i64 FRAGMENT_TAG_BYTES = 7;  // ZF:i, without a sign

// Whether what stands there is the number of a fragment.
HOST_DEVICE bool is_fragment_tag(const u8* tag) { return tag[0] == 'Z' && tag[1] == 'F' && tag[2] == 'I'; }

HOST_DEVICE u32 fragment_id(const u8* tag) { return u32_at(tag + 3); }

HOST_DEVICE void store_u32(u8* bytes, u32 value) {
    for (i64 i = 0; i < 4; ++i) bytes[i] = (u8)(value >> 8 * i);
}

HOST_DEVICE void write_fragment_tag(u8* tag, u32 number) {
    tag[0] = 'Z';
    tag[1] = 'F';
    tag[2] = 'I';
    store_u32(tag + 3, number);
}

// tag_bytes: bytes of that number, or none where nothing is marked. marks: of fragments, enum Mark. is_removed: duplicates are left
// out. has_type: they are told what they are duplicates of. is_kept: nothing is marked, and the number stays.
struct Marking {
    const u8* marks OF(any);
    i64 tag_bytes;
    bool is_removed;
    bool has_type;
    bool is_kept;

    // Of a record of so many bytes with the number.
    HOST_DEVICE u8 mark_of(const u8* record, i64 stored_length) const {
        return tag_bytes && !is_kept ? marks[fragment_id(record + stored_length - tag_bytes)] : 0;
    }
    // Bytes of the record without the number, as it is written; 0 where it is left out.
    HOST_DEVICE i64 output_length(i64 stored_length, u8 mark) const {
        if (is_kept) return stored_length;
        bool is_duplicate = mark & DUPLICATE;
        if (is_duplicate && is_removed) return 0;
        return stored_length - tag_bytes + (is_duplicate && has_type ? TYPE_TAG_BYTES : 0);
    }
    // Bytes of those that are written which the record has itself.
    HOST_DEVICE i64 copied_length(i64 length, u8 mark) const {
        return length - (mark & DUPLICATE && has_type ? TYPE_TAG_BYTES : 0);
    }
    // Mark a copy, of so many bytes as it is written; what was marked before is no more, unless it is a duplicate.
    HOST_DEVICE void apply(u8* copy, i64 length, u8 mark) const {
        if (is_kept) return store_u32(copy, (u32)(length - 4));
        if (tag_bytes) copy[19] &= (u8) ~(DUPLICATE_RECORD >> 8);
        if (!(mark & DUPLICATE)) return;
        copy[19] |= DUPLICATE_RECORD >> 8;
        if (!has_type) return;
        u8* tag = copy + length - TYPE_TAG_BYTES;
        bool is_optical = mark & OPTICAL;
        tag[0] = 'D';
        tag[1] = 'T';
        tag[2] = 'Z';
        tag[3] = is_optical ? 'S' : 'L';
        tag[4] = is_optical ? 'Q' : 'B';
        tag[5] = 0;
        store_u32(copy, (u32)(length - 4));
    }
};
