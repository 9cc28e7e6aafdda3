// Deflate (RFC 1951), by a group whose lanes all decode the same and copy together; the first one makes the codes.
//
// It may begin in the middle of a stream: what a block copies from in front of there is not known yet, and becomes a marker.
// See parts.cu; where all is known, symbols are bytes, see members.cu.
#pragma once
#include "common/portable.cuh"

const i32 WINDOW_BYTES = 1 << 15;  // how far back a copy reaches
const i32 LITERALS = 256;          // symbols below are bytes; LITERALS + i is byte i of the window in front

const i32 CODE_BITS = 15, TABLE_BITS = 10;  // of the longest code; and of those that one look-up decodes
const i32 LITERAL_CODES = 288, DISTANCE_CODES = 32, LENGTH_CODES = 19;
const i32 END_OF_BLOCK = 256;

// Bits of some bytes, the lowest of each byte first. Behind the end they are 0.
struct Bits {
    const u8* bytes;
    i64 size, next;  // of the bytes; that which is loaded next
    u64 held;
    i32 count;  // bits that are held

    Bits() = default;
    HOST_DEVICE Bits(const u8* bytes, i64 size, i64 bit) : bytes(bytes), size(size), next(bit / 8), held(0), count(0) {
        fill();
        drop((i32)(bit & 7));
    }
    // At least 56 bits.
    HOST_DEVICE void fill() {
        if (next + 8 <= size) {
            held |= load_u64(bytes + next) << count;
            next += (63 - count) >> 3;
            count |= 56;
            return;
        }
        for (; count <= 55; count += 8, ++next) held |= (u64)(next < size ? bytes[next] : 0) << count;
    }
    HOST_DEVICE u32 peek(i32 bits) const { return (u32)(held & ((1ull << bits) - 1)); }
    HOST_DEVICE void drop(i32 bits) { held >>= bits, count -= bits; }
    HOST_DEVICE u32 take(i32 bits) {
        u32 found = peek(bits);
        drop(bits);
        return found;
    }
    HOST_DEVICE i64 place() const { return next * 8 - count; }
    HOST_DEVICE bool is_beyond() const { return place() > size * 8; }
};

// A prefix code. An entry of the table has in its low byte how many bits it decodes, 0 for longer codes and for none, and
// above them the symbol, or two bytes where it is a PAIR.
const u32 PAIR = 1u << 31;

struct Code {
    u32 table[1 << TABLE_BITS];
    u16 counts[CODE_BITS + 1];   // of the codes of each length
    u16 symbols[LITERAL_CODES];  // in the order of their codes

    // Whether lengths, 0 for none, make a code: complete, or, where it may be `lone`, of one symbol at most.
    HOST_DEVICE bool build(const u8* lengths, i32 size, bool lone) {
        u16 starts[CODE_BITS + 2] = {};
        u32 codes[CODE_BITS + 1], code = 0;
        for (i32 bits = 0; bits <= CODE_BITS; ++bits) counts[bits] = 0;
        for (i32 i = 0; i < size; ++i) ++counts[lengths[i]];
        i32 used = size - counts[0], left = 1;
        counts[0] = 0;
        for (i32 bits = 1; bits <= CODE_BITS; ++bits) {
            left = 2 * left - counts[bits];
            if (left < 0) return false;
            starts[bits + 1] = (u16)(starts[bits] + counts[bits]);
            codes[bits] = code = code + counts[bits - 1] << 1;
        }
        if (left > 0 && !(lone && used <= 1)) return false;
        for (i32 i = 0; i < 1 << TABLE_BITS; ++i) table[i] = 0;
        for (i32 symbol = 0; symbol < size; ++symbol) {
            i32 bits = lengths[symbol];
            if (!bits) continue;
            symbols[starts[bits]++] = (u16)symbol;
            u32 own = codes[bits]++;
            if (bits > TABLE_BITS) continue;
            for (u32 at = (u32)(reverse_bits(own) >> (64 - bits)); at < 1u << TABLE_BITS; at += 1u << bits)
                table[at] = (u32)symbol << 8 | (u32)bits;
        }
        return true;
    }
    // Let entries hold two bytes where their codes are short. That of what is behind a code has a lower number, or is its
    // own: it has one byte yet.
    HOST_DEVICE void join() {
        for (i32 at = (1 << TABLE_BITS) - 1; at >= 0; --at) {
            u32 first = table[at], second = table[at >> (first & 255)], both = (first & 255) + (second & 255);
            bool are_bytes = (first & 255) && (second & 255) && first >> 8 < LITERALS && second >> 8 < LITERALS;
            if (are_bytes && both <= TABLE_BITS) table[at] = PAIR | (second >> 8) << 16 | first >> 8 << 8 | both;
        }
    }
    // The symbol of a code that the table has not, -1 where there is none.
    HOST_DEVICE i32 long_symbol(Bits& bits) const {
        i32 code = 0, first = 0, index = 0;
        for (i32 length = 1; length <= CODE_BITS; ++length) {
            code |= (i32)(bits.held >> (length - 1) & 1);
            if (code - first < counts[length]) {
                bits.drop(length);
                return symbols[index + code - first];
            }
            index += counts[length];
            first = first + counts[length] << 1;
            code <<= 1;
        }
        return -1;
    }
    HOST_DEVICE i32 symbol(Bits& bits) const {
        u32 entry = table[bits.peek(TABLE_BITS)];
        if (!(entry & 255)) return long_symbol(bits);
        bits.drop((i32)(entry & 255));
        return (i32)(entry >> 8);
    }
};

// The codes of a block of the kind that has its own, or of that which has the fixed ones.
struct Codes {
    Code literals, distances;

    HOST_DEVICE bool build(const u8* lengths, i32 literal_count, i32 distance_count) {
        if (!lengths[END_OF_BLOCK] || !literals.build(lengths, literal_count, true)) return false;
        literals.join();
        return distances.build(lengths + literal_count, distance_count, true);
    }
    HOST_DEVICE bool build_fixed() {
        u8 lengths[LITERAL_CODES + DISTANCE_CODES];
        for (i32 i = 0; i < LITERAL_CODES; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
        for (i32 i = 0; i < DISTANCE_CODES; ++i) lengths[LITERAL_CODES + i] = 5;
        return build(lengths, LITERAL_CODES, DISTANCE_CODES);
    }
    // From what a block has behind its kind.
    HOST_DEVICE bool read(Bits& bits) {
        const u8 order[LENGTH_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
        bits.fill();
        i32 literal_count = (i32)bits.take(5) + 257, distance_count = (i32)bits.take(5) + 1,
            count = (i32)bits.take(4) + 4;
        if (literal_count > 286 || distance_count > 30) return false;
        u8 lengths[LITERAL_CODES + DISTANCE_CODES] = {}, own[LENGTH_CODES] = {};
        i32 left = 1 << 7;
        for (i32 i = 0; i < count; ++i) {
            if (bits.count < 3) bits.fill();
            own[order[i]] = (u8)bits.take(3);
            if (own[order[i]]) left -= 1 << 7 >> own[order[i]];
        }
        // Most places that are no block end here, before a table is made.
        if (left || !distances.build(own, LENGTH_CODES, false)) return false;
        for (i32 i = 0; i < literal_count + distance_count;) {
            bits.fill();
            i32 symbol = distances.symbol(bits), times = 1;
            u8 value = (u8)symbol;
            if (symbol < 0) return false;
            if (symbol == 16) {
                if (i == 0) return false;
                value = lengths[i - 1], times = 3 + (i32)bits.take(2);
            } else if (symbol > 16) {
                value = 0, times = symbol == 17 ? 3 + (i32)bits.take(3) : 11 + (i32)bits.take(7);
            }
            if (i + times > literal_count + distance_count) return false;
            for (; times; --times) lengths[i++] = value;
        }
        return build(lengths, literal_count, distance_count);
    }
};

enum BlockEnd { BLOCK_IS_WHOLE, BLOCK_HAS_NO_ROOM, BLOCK_IS_CORRUPT };

// What is inflated: bytes, or bytes and markers of what is in front.
template <class T> struct Symbols {
    T* made;
    i64 count, room;
    i32 farthest;  // the lowest byte of the window that is asked for; WINDOW_BYTES for none

    HOST_DEVICE void put(u32 byte) {
        if (warp_lane() == 0) made[count] = (T)byte;
        ++count;
    }
    HOST_DEVICE void copy(i64 distance, i32 length) {
        for (; sizeof(T) > 1 && length && distance > count; --length) {
            i32 place = (i32)(WINDOW_BYTES + count - distance);
            farthest = minimum(farthest, place);
            put((u32)(LITERALS + place));
        }
        warp_sync();
        if (WARP_WIDTH == 1)
            for (i32 i = 0; i < length; ++i) made[count + i] = made[count + i - distance];
        else
            for (i32 i = warp_lane(); i < length; i += WARP_WIDTH)
                made[count + i] = made[count - distance + (i < distance ? i : i % distance)];
        warp_sync();
        count += length;
    }
    HOST_DEVICE BlockEnd take_stored(Bits& bits) {
        bits.drop((i32)(bits.count & 7));
        bits.fill();
        i32 length = (i32)bits.take(16), complement = (i32)bits.take(16);
        if (length != (complement ^ 0xFFFF) || bits.place() / 8 + length > bits.size) return BLOCK_IS_CORRUPT;
        if (count + length > room) return BLOCK_HAS_NO_ROOM;
        const u8* bytes = bits.bytes + bits.place() / 8;
        for (i32 i = warp_lane(); i < length; i += WARP_WIDTH) made[count + i] = bytes[i];
        warp_sync();
        count += length;
        bits = Bits(bits.bytes, bits.size, bits.place() + 8 * length);
        return BLOCK_IS_WHOLE;
    }
    HOST_DEVICE BlockEnd take_coded(Bits& bits, const Codes& codes) {
        const u16 lengths[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                               31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
        const u8 length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                  2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
        const u16 distances[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                 33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
        while (true) {
            bits.fill();
            if (bits.is_beyond()) return BLOCK_IS_CORRUPT;
            // Three of them have 45 bits at most.
            i32 symbol = 0;
            for (i32 i = 0; i < 3; ++i) {
                u32 entry = codes.literals.table[bits.peek(TABLE_BITS)];
                bits.drop((i32)(entry & 255));
                if (entry & PAIR) {
                    if (count + 2 > room) return BLOCK_HAS_NO_ROOM;
                    put(entry >> 8 & 255);
                    put(entry >> 16 & 255);
                    continue;
                }
                symbol = entry & 255 ? (i32)(entry >> 8) : codes.literals.long_symbol(bits);
                if (symbol < 0) return BLOCK_IS_CORRUPT;
                if (symbol >= LITERALS) break;
                if (count == room) return BLOCK_HAS_NO_ROOM;
                put((u32)symbol);
            }
            if (symbol < LITERALS) continue;
            if (symbol == END_OF_BLOCK) return bits.is_beyond() ? BLOCK_IS_CORRUPT : BLOCK_IS_WHOLE;
            if (symbol > 285) return BLOCK_IS_CORRUPT;
            bits.fill();
            i32 length = lengths[symbol - 257] + (i32)bits.take(length_bits[symbol - 257]);
            i32 far = codes.distances.symbol(bits);
            if (far < 0 || far > 29) return BLOCK_IS_CORRUPT;
            i64 distance = distances[far] + bits.take(far < 4 ? 0 : far / 2 - 1);
            if (distance > count + (sizeof(T) > 1 ? WINDOW_BYTES : 0)) return BLOCK_IS_CORRUPT;
            if (count + length > room) return BLOCK_HAS_NO_ROOM;
            copy(distance, length);
        }
    }
    // One block, from its kind on.
    HOST_DEVICE BlockEnd take_block(Bits& bits, Codes& codes) {
        bits.fill();
        u32 kind = bits.take(3) >> 1;
        if (kind == 0) return take_stored(bits);
        bool is_code = false;
        warp_sync();
        if (warp_lane() == 0) is_code = kind == 1 ? codes.build_fixed() : kind == 2 && codes.read(bits);
        warp_sync();
        bits = warp_shuffle(bits, 0);
        return warp_any(is_code) ? take_coded(bits, codes) : BLOCK_IS_CORRUPT;
    }
};
