// Pack every read in both orientations, in the layout of queries.cuh.
#include "reads/queries.cuh"

HOST_DEVICE i32 complement(i32 code) { return code < 4 ? 3 - code : 4; }  // of a base code, 4: ambiguous
// Return 1 if the reverse complement is smaller than the read, else 0.
HOST_DEVICE i32 is_flipped(const u8* read, i32 length) {
    for (i32 i = 0; i < length; ++i) {
        i32 forward = minimum<i32>(base_code(read[i]), 4);
        i32 reverse = complement(minimum<i32>(base_code(read[length - 1 - i]), 4));
        if (forward != reverse) return reverse < forward;
    }
    return 0;
}

// The codes of up to 32 letters, the first in the high bits, and the marks of ambiguous letters.
struct PackedLetters {
    u64 bases, ambiguous;
};

// Load eight letters, the first into the lowest byte.
HOST_DEVICE u64 eight_letters(const u8* letters) {
    u64 found = 0;
    UNROLL for (i32 i = 0; i < 8; ++i)
        found |= (u64)letters[i] << (8 * i);
    return found;
}
// Return a word with the high bit of each byte set if that byte of `bytes` is 0.
HOST_DEVICE u64 zero_bytes(u64 bytes) {
    const u64 low = 0x7F7F7F7F7F7F7F7Full;
    return ~((bytes & low) + low | bytes | low);
}
// Return true if all eight letters are A, C, G, T or U, of either case.
HOST_DEVICE bool are_bases(u64 letters) {
    const u64 each = 0x0101010101010101ull, upper = letters & 0xDF * each;
    u64 found = zero_bytes(upper ^ 'A' * each) | zero_bytes(upper ^ 'C' * each) | zero_bytes(upper ^ 'G' * each) |
            zero_bytes((upper & ~each) ^ 'T' * each);
    return found == 0x80 * each;
}
// Pack four codes, one per byte, into one byte: the product shifts each code to its position in the highest byte.
HOST_DEVICE u32 packed_codes(u32 codes) { return codes * 0x40100401u >> 24; }
// Pack `count` letters, at most 32. other: incremented by the number of ambiguous letters except N.
HOST_DEVICE PackedLetters pack_letters(const u8* letters, i32 count, i32& other) {
    PackedLetters found = {0, 0};
    i32 i = 0;
    for (; i + 8 <= count; i += 8) {
        u64 eight = eight_letters(letters + i);
        if (!are_bases(eight)) break;
        u64 codes = (eight >> 1 ^ eight >> 2) & 0x0303030303030303ull;
        found.bases |= (u64)(packed_codes((u32)codes) << 8 | packed_codes((u32)(codes >> 32))) << (48 - 2 * i);
    }
    for (; i < count; ++i) {
        i32 code = base_code(letters[i]);
        other += code == 4 && (letters[i] & 0xDF) != 'N';
        if (code < 4) found.bases |= (u64)code << (62 - 2 * i);
        else found.ambiguous |= 1ull << (62 - 2 * i);
    }
    return found;
}

// Return codes and ambiguity marks of 32 bases of the reverse complement from `position` on; 0 after its end.
HOST_DEVICE PackedLetters reversed(const PackedWords& bases, const PackedWords& ambiguous, i32 length, i32 position) {
    i32 start = length - position - 32, beyond = maximum(-2 * start, 0);
    if (start <= -32) return PackedLetters{0, 0};
    u64 marks = reverse_bits(ambiguous.at(maximum(start, 0))) >> 1 << beyond;
    return PackedLetters{reverse_complement(bases.at(maximum(start, 0))) << beyond & ~(3 * marks), marks};
}

// Pack reads in both orientations into `words`, and write READ_ flags and a hash of the canonical orientation. An item
// is a slot: record order[slot]. marks: READ_ flags by record. replaced: number of ambiguous letters other than N.
KERNEL void pack_queries(Items items, const u8* bytes OF(any), const i32* order OF(items),
        const i64* sequence_starts OF(items), const i32* lengths OF(items), const u8* marks OF(items),
        const i64* tile_offsets OF((items - 1 >> tile_bits) + 2), u64* words OF(any), u8* flags OF(items),
        u64* hashes OF(items), u64* replaced OF(1), i32 tile_bits) {
    i64 lanes = (i64)1 << tile_bits;
    FOR_EACH(slot, items) {
        i64 record = order[slot], tile = slot >> tile_bits;
        i32 length = lengths[slot];
        i64 plane = (tile_offsets[tile + 1] - tile_offsets[tile]) / 4;
        i32 plane_words = (i32)(plane >> tile_bits);
        u64* own = words + tile_offsets[tile] + (slot & (lanes - 1));
        const u8* read = bytes + sequence_starts[record];
        i32 flipped = is_flipped(read, length);
        u64 *forward = own + flipped * plane, *ambiguous = own + (2 + flipped) * plane, any_ambiguous = 0;
        i32 other = 0;
        for (i32 word = 0; word < plane_words; ++word) {
            PackedLetters found = pack_letters(read + 32 * word, minimum(length - 32 * word, 32), other);
            forward[word * lanes] = found.bases;
            ambiguous[word * lanes] = found.ambiguous;
            any_ambiguous |= found.ambiguous;
        }
        u64 hash = (u64)length;
        for (i32 word = 0; word < plane_words; ++word) {
            PackedLetters found =
                    reversed(PackedWords{forward, lanes}, PackedWords{ambiguous, lanes}, length, 32 * word);
            own[(1 - flipped) * plane + word * lanes] = found.bases;
            own[(3 - flipped) * plane + word * lanes] = found.ambiguous;
            if (32 * word < length)
                hash = splitmix64(hash + (flipped ? found.bases : forward[word * lanes]) + 0x9E3779B97F4A7C15ull);
        }
        if (other) atomic_add(replaced, (u64)other);
        flags[slot] = (u8)(marks[record] | (flipped ? READ_FLIPPED : 0) | (any_ambiguous ? READ_AMBIGUOUS : 0));
        hashes[slot] = hash;
    }
}
