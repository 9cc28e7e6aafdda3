// Merge parts of sorted runs, on the host only, one thread a piece; inputs are passed as addresses.
#include "bam/marking.cuh"

// Comparison of keys: uint64, or byte strings of equal length.
struct KeyOrder {
    i64 bytes;
    bool are_numbers;
    HOST_DEVICE bool less(const u8* one, const u8* other) const {
        if (are_numbers) return *(const u64*)one < *(const u64*)other;
        for (i64 i = 0; i < bytes; ++i)
            if (one[i] != other[i]) return one[i] < other[i];
        return false;
    }
};

// A heap of the parts with records left, by their next key, then by their index.
struct Heap {
    i32* parts;
    i64 count;
    const u64* next_keys;  // address of the next key of each part
    KeyOrder order;
    HOST_DEVICE bool precedes(i32 one, i32 other) const {
        const u8 *key = (const u8*)next_keys[one], *other_key = (const u8*)next_keys[other];
        return order.less(key, other_key) || (!order.less(other_key, key) && one < other);
    }
    HOST_DEVICE void sift_down(i64 at) {
        i32 part = parts[at];
        for (i64 child = 2 * at + 1; child < count; child = 2 * at + 1) {
            if (child + 1 < count && precedes(parts[child + 1], parts[child])) ++child;
            if (!precedes(parts[child], part)) break;
            parts[at] = parts[child];
            at = child;
        }
        parts[at] = part;
    }
};

// Merge sorted parts. One item does all. For each part, next_keys and next_offsets: addresses of its next key and of
// the offset of its next record, relative to base_addresses; last_keys: address after its keys. Keys have key_bytes
// bytes and are uint64 if are_numbers. merged, keys, ends: the output records, their keys, and where each ends;
// written: their number, without dropped records. heap: scratch.
KERNEL void merge_records(Items items, u64* next_keys OF(parts), u64* next_offsets OF(parts),
        const u64* last_keys OF(parts), const u64* base_addresses OF(parts), i32* heap OF(parts), Marking marking,
        u8* merged OF(capacity), u8* keys OF(records* key_bytes), i64* ends OF(records), i64* written OF(items),
        i64 parts, i64 capacity, i64 records, i64 key_bytes, i32 are_numbers) {
    FOR_EACH(item, items) {
        Heap queue = {heap, parts, next_keys, {key_bytes, are_numbers != 0}};
        for (i32 part = 0; part < parts; ++part) heap[part] = part;
        for (i64 at = parts / 2 - 1; at >= 0; --at) queue.sift_down(at);
        i64 at = 0, count = 0;
        for (i64 record = 0; record < records; ++record) {
            i32 part = heap[0];
            const i64* offsets = (const i64*)next_offsets[part];
            const u8 *bytes = (const u8*)(base_addresses[part] + (u64)offsets[0]), *key = (const u8*)next_keys[part];
            i64 stored_length = offsets[1] - offsets[0];
            u8 mark = marking.mark_of(bytes, stored_length);
            i64 length = marking.output_length(stored_length, mark), copied = marking.copied_length(length, mark);
            if (at + length > capacity) return;
            if (length) {
                for (i64 i = 0; i < copied; ++i) merged[at + i] = bytes[i];
                marking.apply(merged + at, length, mark);
                for (i64 i = 0; i < key_bytes; ++i) keys[count * key_bytes + i] = key[i];
                ends[count++] = at += length;
            }
            next_offsets[part] += sizeof(i64);
            next_keys[part] += (u64)key_bytes;
            if (next_keys[part] == last_keys[part]) heap[0] = heap[--queue.count];
            if (queue.count) queue.sift_down(0);
        }
        written[item] = count;
    }
}
