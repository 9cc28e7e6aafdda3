// Packing: every read in both orientations, interleaved as in queries.cuh.
#include "reads/queries.cuh"

HOST_DEVICE i32 complement(i32 code) { return code < 4 ? 3 - code : 4; }

// 1 where the reverse complement is smaller than the read.
HOST_DEVICE i32 is_flipped(const u8* read, i32 length) {
    for (i32 i = 0; i < length; ++i) {
        i32 forward = minimum<i32>(base_code(read[i]), 4);
        i32 reverse = complement(minimum<i32>(base_code(read[length - 1 - i]), 4));
        if (forward != reverse) return reverse < forward;
    }
    return 0;
}

// An item is a slot; order[slot] is its record; marks: what is known of each record. replaced: ambiguous letters other than N.
KERNEL void pack_queries(i64 begin, i64 end, const u8* bytes OF(some), const i32* order OF(items),
                         const i64* sequence_starts OF(items), const i32* lengths OF(items), const u8* marks OF(items),
                         const i64* block_offsets OF((items - 1 >> lane_bits) + 2), u64* words OF(some),
                         u8* flags OF(items), u64* hashes OF(items), u64* replaced OF(1), i32 lane_bits) {
    i64 lanes = (i64)1 << lane_bits;
    FOR_EACH(slot, begin, end) {
        i64 record = order[slot], block = slot >> lane_bits;
        i32 length = lengths[slot];
        i64 plane = (block_offsets[block + 1] - block_offsets[block]) / 4;
        u64* own = words + block_offsets[block] + (slot & (lanes - 1));
        const u8* read = bytes + sequence_starts[record];
        i32 flipped = is_flipped(read, length);
        u64 hash = (u64)length, forward = 0, reverse = 0, forward_mask = 0, reverse_mask = 0;
        i32 ambiguous = 0, other = 0;
        i64 plane_words = plane >> lane_bits;
        for (i64 i = 0, word = 0; word < plane_words; ++i) {
            i32 code = 0, back = 0;
            if (i < length) {
                u8 letter = read[i];
                code = base_code(letter);
                other += code == 4 && (letter & 0xDF) != 'N';
                back = complement(minimum<i32>(base_code(read[length - 1 - i]), 4));
            }
            ambiguous |= code >= 4;
            forward = forward << 2 | (u64)(code < 4 ? code : 0);
            reverse = reverse << 2 | (u64)(back < 4 ? back : 0);
            forward_mask = forward_mask << 2 | (u64)(code >= 4);
            reverse_mask = reverse_mask << 2 | (u64)(back >= 4);
            if ((i & 31) == 31) {
                own[flipped * plane + word * lanes] = forward;
                own[(1 - flipped) * plane + word * lanes] = reverse;
                own[(2 + flipped) * plane + word * lanes] = forward_mask;
                own[(3 - flipped) * plane + word * lanes] = reverse_mask;
                if (word * 32 < length) hash = mix(hash + (flipped ? reverse : forward) + 0x9E3779B97F4A7C15ull);
                ++word;
            }
        }
        if (other) atomic_add(replaced, (u64)other);
        flags[slot] = (u8)(marks[record] | (flipped ? READ_FLIPPED : 0) | (ambiguous ? READ_AMBIGUOUS : 0));
        hashes[slot] = hash;
    }
}
