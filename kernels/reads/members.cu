// Blocks of BGZF, which are members of gzip, as a device's library takes them, and what it makes of them -> their contents.
#include "common/copying.cuh"

const i64 TRAILER = 8;

HOST_DEVICE u32 four_bytes(const u8* bytes) {
    u32 found = 0;
    for (i32 i = 3; i >= 0; --i) found = found << 8 | bytes[i];
    return found;
}

// An item is a block, data from ends[item] to ends[item + 1], which a group copies to item * stride. sizes: of each.
KERNEL void lay_members(i64 begin, i64 end, const u8* data OF(size), const i64* ends OF(items + 1),
                        u8* members OF(room), u64* sizes OF(items), i64 size, i64 room, i64 stride) {
    FOR_EACH_GROUP(item, begin, end) {
        i64 length = ends[item + 1] - ends[item];
        copy_by_group(data + ends[item], length, members + item * stride);
        if (group_lane() == 0) sizes[item] = (u64)length;
    }
}

// An item is a block, of which a group copies the contents from item * stride to where they end. made, sums: how many bytes
// the library made, and their CRC-32, which the end of the block tells too. faults: counts what is not as told.
KERNEL void join_contents(i64 begin, i64 end, const u8* data OF(size), const i64* ends OF(items + 1),
                          const u8* inflated OF(room), const i64* contents_ends OF(items), const u64* made OF(items),
                          const u32* sums OF(items), const i32* statuses OF(items), u8* contents OF(contents_bytes),
                          u64* faults OF(1), i64 size, i64 room, i64 contents_bytes, i64 stride) {
    FOR_EACH_GROUP(item, begin, end) {
        i64 start = item ? contents_ends[item - 1] : 0, length = contents_ends[item] - start;
        const u8* trailer = data + ends[item + 1] - TRAILER;
        bool is_whole = ends[item + 1] - ends[item] > TRAILER && !statuses[item] && made[item] == (u64)length &&
                        made[item] == four_bytes(trailer + 4) && sums[item] == four_bytes(trailer);
        if (is_whole) copy_by_group(inflated + item * stride, length, contents + start);
        else if (group_lane() == 0) atomic_add(faults, 1);
    }
}
