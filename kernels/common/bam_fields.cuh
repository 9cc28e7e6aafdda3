// The fields of a BAM record (SAM specification, section 4.2): little-endian, unaligned.
#pragma once
#include "common/portable.cuh"

const i64 FIXED_BYTES = 36;  // bytes of the fixed fields, including block_size
// Return the little-endian number at an unaligned address.
HOST_DEVICE u32 u32_at(const u8* bytes) {
    return bytes[0] | (u32)bytes[1] << 8 | (u32)bytes[2] << 16 | (u32)bytes[3] << 24;
}
HOST_DEVICE i64 i32_at(const u8* bytes) { return (i32)u32_at(bytes); }  // sign-extended
HOST_DEVICE i64 u16_at(const u8* bytes) { return bytes[0] | bytes[1] << 8; }

struct BamFields {
    const u8* bytes;
    HOST_DEVICE i64 contig() const { return i32_at(bytes + 4); }  // -1 for none
    HOST_DEVICE i64 position() const { return i32_at(bytes + 8); }
    HOST_DEVICE i64 name_length() const { return bytes[12]; }  // including the NUL
    HOST_DEVICE i64 mapq() const { return bytes[13]; }
    HOST_DEVICE i64 operation_count() const { return u16_at(bytes + 16); }
    HOST_DEVICE i64 flag() const { return u16_at(bytes + 18); }
    HOST_DEVICE i64 letters() const { return i32_at(bytes + 20); }
    HOST_DEVICE i64 mate_contig() const { return i32_at(bytes + 24); }
    HOST_DEVICE i64 mate_position() const { return i32_at(bytes + 28); }
    HOST_DEVICE i64 template_length() const { return i32_at(bytes + 32); }
    HOST_DEVICE u32 operation(i64 i) const { return u32_at(bytes + FIXED_BYTES + name_length() + 4 * i); }
    // The sequence, two letters per byte.
    HOST_DEVICE const u8* packed() const { return bytes + FIXED_BYTES + name_length() + 4 * operation_count(); }
    HOST_DEVICE const u8* qualities() const { return packed() + (letters() + 1) / 2; }
    HOST_DEVICE bool has_qualities() const { return letters() && *qualities() != 255; }
    HOST_DEVICE const u8* tags() const { return qualities() + letters(); }
};

struct RecordSpan {
    BamFields record;
    const u8* end;
};

// Return record `item` of consecutive records in `bytes`. ends: where each record ends, plus `origin`.
HOST_DEVICE RecordSpan span_of_record(const u8* bytes, const i64* ends, i64 origin, i64 item) {
    return {{bytes + (item ? ends[item - 1] - origin : 0)}, bytes + (ends[item] - origin)};
}
