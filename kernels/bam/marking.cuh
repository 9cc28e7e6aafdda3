// Records that are held with the number of their fragment behind them, until it is known which fragments are duplicates.
#pragma once
#include "common/bam_fields.cuh"
#include "common/flags.cuh"

// Of a fragment.
enum Mark { DUPLICATE = 1, OPTICAL = 2 };

const i64 TYPE_TAG_BYTES = 6;  // DT:Z:LB or SQ

// tail: bytes of that number, or none where nothing is marked. marks: of fragments, enum Mark. is_removed: duplicates are left
// out. has_type: they are told what they are duplicates of.
struct Marking {
    const u8* marks OF(some);
    i64 tail;
    bool is_removed;
    bool has_type;

    // Of a record of so many bytes with the number.
    HOST_DEVICE u8 mark(const u8* record, i64 held) const {
        return tail ? marks[(i64)((u64)u32_at(record + held - tail) | (u64)u32_at(record + held - tail + 4) << 32)] : 0;
    }
    // Bytes of the record without the number, as it is written; 0 where it is left out.
    HOST_DEVICE i64 written(i64 held, u8 mark) const {
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
        u32 size = (u32)(length - 4);
        for (i64 i = 0; i < 4; ++i) copy[i] = (u8)(size >> 8 * i);
    }
};
