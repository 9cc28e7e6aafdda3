// Records that are held with the number of their fragment behind them, until it is known which fragments are duplicates. The
// number is a tag, so that it may stay where that is known only when other files are there too.
#pragma once
#include "common/bam_fields.cuh"
#include "common/sam_flags.cuh"

// Of a fragment.
enum Mark { DUPLICATE = 1, OPTICAL = 2 };

const i64 TYPE_TAG_BYTES = 6;    // DT:Z:LB or SQ
const i64 NUMBER_TAG_BYTES = 7;  // ZF:i, without a sign

// Whether what stands there is the number of a fragment.
HOST_DEVICE bool is_number(const u8* tag) { return tag[0] == 'Z' && tag[1] == 'F' && tag[2] == 'I'; }

HOST_DEVICE u32 number_of(const u8* tag) { return u32_at(tag + 3); }

HOST_DEVICE void put_u32(u8* bytes, u32 value) {
    for (i64 i = 0; i < 4; ++i) bytes[i] = (u8)(value >> 8 * i);
}

HOST_DEVICE void put_number(u8* tag, u32 number) {
    tag[0] = 'Z';
    tag[1] = 'F';
    tag[2] = 'I';
    put_u32(tag + 3, number);
}

// tail: bytes of that number, or none where nothing is marked. marks: of fragments, enum Mark. is_removed: duplicates are left
// out. has_type: they are told what they are duplicates of. is_kept: nothing is marked, and the number stays.
struct Marking {
    const u8* marks OF(any);
    i64 tail;
    bool is_removed;
    bool has_type;
    bool is_kept;

    // Of a record of so many bytes with the number.
    HOST_DEVICE u8 mark(const u8* record, i64 held) const {
        return tail && !is_kept ? marks[number_of(record + held - tail)] : 0;
    }
    // Bytes of the record without the number, as it is written; 0 where it is left out.
    HOST_DEVICE i64 written(i64 held, u8 mark) const {
        if (is_kept) return held;
        bool is_duplicate = mark & DUPLICATE;
        if (is_duplicate && is_removed) return 0;
        return held - tail + (is_duplicate && has_type ? TYPE_TAG_BYTES : 0);
    }
    // Bytes of those that are written which the record has itself.
    HOST_DEVICE i64 copied(i64 length, u8 mark) const {
        return length - (mark & DUPLICATE && has_type ? TYPE_TAG_BYTES : 0);
    }
    // Mark a copy, of so many bytes as it is written; what was marked before is no more, unless it is a duplicate.
    HOST_DEVICE void put(u8* copy, i64 length, u8 mark) const {
        if (is_kept) return put_u32(copy, (u32)(length - 4));
        if (tail) copy[19] &= (u8) ~(DUPLICATE_RECORD >> 8);
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
        put_u32(copy, (u32)(length - 4));
    }
};
