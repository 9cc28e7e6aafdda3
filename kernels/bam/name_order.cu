// Sort keys of BAM records by name, in the order of samtools sort -n: digits compare as numbers; within a template the
// first segment precedes the last, then secondary and supplementary records. Keys compare as bytes: a number is '0',
// its digit count and its digits without leading zeros; other characters are unchanged; then a zero, the flags, and
// padding zeros. A word has eight bytes, the first in the high bits.
#include "common/bam_fields.cuh"
#include "common/sam_flags.cuh"

HOST_DEVICE bool is_digit(u8 letter) { return letter >= '0' && letter <= '9'; }
// Writes the bytes of a key to words with distance `stride`, or only counts them if `words` is null.
struct KeyWriter {
    u64* words;
    i64 stride, count;
    HOST_DEVICE void put(u8 byte) {
        if (words) words[count / 8 * stride] |= (u64)byte << (56 - 8 * (count & 7));
        ++count;
    }
    HOST_DEVICE void put_name(const u8* name, i64 length) {
        for (i64 i = 0; i < length;) {
            if (!is_digit(name[i])) {
                put(name[i++]);
                continue;
            }
            while (i < length && name[i] == '0') ++i;
            i64 end = i;
            while (end < length && is_digit(name[end])) ++end;
            put('0');
            put((u8)(end - i));
            while (i < end) put(name[i++]);
        }
    }
};

// Return the key byte that orders records of one name; bits, from high: last, first, secondary, supplementary.
HOST_DEVICE u8 segment_key(i64 flag) {
    return (u8)((flag & (FIRST_MATE | SECOND_MATE)) | (flag & SECONDARY ? 8 : 0) | (flag & SUPPLEMENTARY ? 1 : 0));
}
// Raise max_bytes[0] to the bytes of the longest name key. ends: inclusive scan of lengths, 0 for no record.
KERNEL void measure_keys(Items items, const u8* bytes OF(any), const i64* lengths OF(items), const i64* ends OF(items),
        i32* max_bytes OF(1)) {
    FOR_EACH(entry, items) {
        if (!lengths[entry]) continue;
        BamFields record = {bytes + ends[entry] - lengths[entry]};
        KeyWriter key = {0, 0, 0};
        key.put_name(record.bytes + FIXED_BYTES, record.name_length() - 1);
        if ((i32)key.count + 2 > *max_bytes) atomic_max(max_bytes, (i32)key.count + 2);
    }
}

// Write the name key of each entry, word w to words[w * entries + entry], all ones without a record, and is_record.
// count: words of a key; ends: inclusive scan of the record lengths, which are 0 without a record.
KERNEL void compute_name_keys(Items items, const u8* bytes OF(any), const i64* lengths OF(items),
        const i64* ends OF(items), u64* words OF(count* items), u8* is_record OF(items), i64 entries, i64 count) {
    FOR_EACH(entry, items) {
        is_record[entry] = lengths[entry] > 0;
        for (i64 word = 0; word < count; ++word) words[word * entries + entry] = is_record[entry] ? 0 : ~0ull;
        if (!is_record[entry]) continue;
        BamFields record = {bytes + ends[entry] - lengths[entry]};
        KeyWriter key = {words + entry, entries, 0};
        key.put_name(record.bytes + FIXED_BYTES, record.name_length() - 1);
        key.put(0);
        key.put(segment_key(record.flag()));
    }
}

// Write the keys of the entries order[item] as 8 * count bytes each. words: as compute_name_keys writes them.
KERNEL void write_keys(Items items, const u64* words OF(count* entries), const u32* order OF(items),
        u8* keys OF(8 * count * items), i64 entries, i64 count) {
    FOR_EACH(item, items)
        for (i64 i = 0; i < 8 * count; ++i)
            keys[8 * count * item + i] = (u8)(words[i / 8 * entries + order[item]] >> (56 - 8 * (i & 7)));
}
