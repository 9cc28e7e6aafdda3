// Marking duplicates. Until all fragments are known, each stored record is followed by the ID of its fragment,
// formatted as a tag, so that a shard can keep the IDs in its output until the other shards are known.
#pragma once
#include "common/bam_fields.cuh"
#include "common/sam_flags.cuh"

// Marks of a fragment.
enum Mark { DUPLICATE = 1, OPTICAL = 2 };

const i64 TYPE_TAG_BYTES = 6;      // DT:Z:LB or DT:Z:SQ
const i64 FRAGMENT_TAG_BYTES = 7;  // ZF:I (uint32)
// Return true if `tag` points to the start of a fragment tag, ZF:I.
HOST_DEVICE bool is_fragment_tag(const u8* tag) { return tag[0] == 'Z' && tag[1] == 'F' && tag[2] == 'I'; }
// Return the fragment ID, the value of the fragment tag at `tag`.
HOST_DEVICE u32 fragment_id(const u8* tag) { return u32_at(tag + 3); }

HOST_DEVICE void store_u32(u8* bytes, u32 value) {  // little-endian
    for (i64 i = 0; i < 4; ++i) bytes[i] = (u8)(value >> 8 * i);
}
// Write a fragment tag, FRAGMENT_TAG_BYTES bytes, to `tag`. fragment: the ID.
HOST_DEVICE void write_fragment_tag(u8* tag, u32 fragment) {
    tag[0] = 'Z';
    tag[1] = 'F';
    tag[2] = 'I';
    store_u32(tag + 3, fragment);
}

// How duplicates are marked. marks: enum Mark of each fragment. tag_bytes: size of the fragment tag after each record;
// 0 if nothing is marked. is_removed: duplicates are dropped. has_type: duplicates get a DT tag. is_kept: no record is
// marked, and fragment tags become part of the records.
struct Marking {
    const u8* marks OF(any);
    i64 tag_bytes;
    bool is_removed, has_type, is_kept;
    // Return the mark of a record; stored_length: bytes including the fragment tag.
    HOST_DEVICE u8 mark_of(const u8* record, i64 stored_length) const {
        return tag_bytes && !is_kept ? marks[fragment_id(record + stored_length - tag_bytes)] : 0;
    }
    // Return the bytes of the record in the output, or 0 if it is dropped.
    HOST_DEVICE i64 output_length(i64 stored_length, u8 mark) const {
        if (is_kept) return stored_length;
        bool is_duplicate = mark & DUPLICATE;
        if (is_duplicate && is_removed) return 0;
        return stored_length - tag_bytes + (is_duplicate && has_type ? TYPE_TAG_BYTES : 0);
    }
    // Return the number of output bytes that are copied from the stored record.
    HOST_DEVICE i64 copied_length(i64 length, u8 mark) const {
        return length - (mark & DUPLICATE && has_type ? TYPE_TAG_BYTES : 0);
    }
    // Mark a copy of output length `length`: replace its duplicate flag, and add the DT tag.
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
