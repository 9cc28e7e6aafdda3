// Sorted parts of runs -> their records in order. The host alone merges, a piece a thread; what it reads comes as addresses.
#include "bam/marking.cuh"

// Keys of some bytes: numbers of eight, or bytes that compare one after the other.
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

// The parts that have records left, the one whose key is next in front: a heap, of equal keys by their numbers.
struct Heap {
    i32* parts;
    i64 count;
    const u64* next_keys;  // of each part, an address
    KeyOrder order;

    HOST_DEVICE bool before(i32 one, i32 other) const {
        const u8 *own = (const u8*)next_keys[one], *its = (const u8*)next_keys[other];
        return order.less(own, its) || (!order.less(its, own) && one < other);
    }
    HOST_DEVICE void sift_down(i64 at) {
        i32 own = parts[at];
        for (i64 child = 2 * at + 1; child < count; child = 2 * at + 1) {
            if (child + 1 < count && before(parts[child + 1], parts[child])) ++child;
            if (!before(parts[child], own)) break;
            parts[at] = parts[child];
            at = child;
        }
        parts[at] = own;
    }
};

// An item is all records. Of each part: next_keys and next_offsets, where its first key lies, and where what says that its
// first record begins, counted from base_addresses on; last_keys, behind its keys. merged, keys, ends: the records in order,
// their keys, and where each ends: `written` of them, those that are not left out. heap: scratch.
KERNEL void merge_records(Items items, u64* next_keys OF(parts), u64* next_offsets OF(parts),
                          const u64* last_keys OF(parts), const u64* base_addresses OF(parts), i32* heap OF(parts),
                          Marking marking, u8* merged OF(room), u8* keys OF(records* key_bytes), i64* ends OF(records),
                          i64* written OF(items), i64 parts, i64 room, i64 records, i64 key_bytes, i32 are_numbers) {
    FOR_EACH(item, items) {
        Heap coming = {heap, parts, next_keys, {key_bytes, are_numbers != 0}};
        for (i32 part = 0; part < parts; ++part) heap[part] = part;
        for (i64 at = parts / 2 - 1; at >= 0; --at) coming.sift_down(at);
        i64 at = 0, count = 0;
        for (i64 record = 0; record < records; ++record) {
            i32 part = heap[0];
            const i64* border = (const i64*)next_offsets[part];
            const u8 *bytes = (const u8*)(base_addresses[part] + (u64)border[0]), *key = (const u8*)next_keys[part];
            i64 stored_length = border[1] - border[0];
            u8 mark = marking.mark_of(bytes, stored_length);
            i64 length = marking.output_length(stored_length, mark), copied = marking.copied_length(length, mark);
            if (at + length > room) return;
            if (length) {
                for (i64 i = 0; i < copied; ++i) merged[at + i] = bytes[i];
                marking.apply(merged + at, length, mark);
                for (i64 i = 0; i < key_bytes; ++i) keys[count * key_bytes + i] = key[i];
                ends[count++] = at += length;
            }
            next_offsets[part] += sizeof(i64);
            next_keys[part] += (u64)key_bytes;
            if (next_keys[part] == last_keys[part]) heap[0] = heap[--coming.count];
            if (coming.count) coming.sift_down(0);
        }
        written[item] = count;
    }
}
