// Inflate deflate blocks (RFC 1951), a warp each: every lane decodes all symbols; lane 0 builds the tables.
//
// Inflating may start in the middle of a stream (parallel_gzip.cu). Bytes copied from before the start are not known
// yet and are written as markers. In bgzf_device.cu everything is known and the output is bytes.
#pragma once
#include "common/portable.cuh"

const i32 WINDOW_BYTES = 1 << 15;  // maximum distance of a copy
const i32 LITERALS = 256;          // output below is a byte; LITERALS + i marks byte i of the window before the start
const i32 CODE_BITS = 15, TABLE_BITS = 10;  // maximum code length; codes up to TABLE_BITS are decoded by one look-up
const i32 LITERAL_CODES = 288, DISTANCE_CODES = 32, LENGTH_CODES = 19;
const i32 END_OF_BLOCK = 256;
// Reads bits, the lowest bit of each byte first. Bits after the end are 0.
struct BitReader {
    const u8* bytes;
    i64 size, next;  // number of bytes, index of the next byte to load
    u64 buffer;
    i32 count;  // bits in the buffer
    BitReader() = default;
    HOST_DEVICE BitReader(const u8* bytes, i64 size, i64 bit)
        : bytes(bytes), size(size), next(bit / 8), buffer(0), count(0) {
        fill();
        skip((i32)(bit & 7));
    }
    // Load at least 56 bits.
    HOST_DEVICE void fill() {
        if (next + 8 <= size) {
            buffer |= load_u64(bytes + next) << count;
            next += (63 - count) >> 3;
            count |= 56;
            return;
        }
        for (; count <= 55; count += 8, ++next) buffer |= (u64)(next < size ? bytes[next] : 0) << count;
    }
    HOST_DEVICE u32 peek(i32 bits) const { return (u32)(buffer & ((1ull << bits) - 1)); }
    HOST_DEVICE void skip(i32 bits) { buffer >>= bits, count -= bits; }
    HOST_DEVICE u32 take(i32 bits) {
        u32 found = peek(bits);
        skip(bits);
        return found;
    }
    HOST_DEVICE i64 position() const { return next * 8 - count; }
    HOST_DEVICE bool is_past_end() const { return position() > size * 8; }
};

// A Huffman code. The low byte of a table entry is the number of bits it decodes, 0 for longer and for unused codes.
// The bits above are the symbol, or two bytes if PAIR is set.
const u32 PAIR = 1u << 31;

struct HuffmanCode {
    u32 table[1 << TABLE_BITS];
    u16 counts[CODE_BITS + 1];   // number of codes of each length
    u16 symbols[LITERAL_CODES];  // in the order of their codes
    // Build the code from the code lengths of its symbols, 0 for unused symbols. Return false if the code is
    // incomplete, unless `allows_single` and at most one symbol is used.
    HOST_DEVICE bool build(const u8* lengths, i32 size, bool allows_single) {
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
        if (left > 0 && !(allows_single && used <= 1)) return false;
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
    // Let one look-up decode two literals whose codes fit in TABLE_BITS. The entry of the second code has a lower or
    // the same index, so in descending order it still holds one literal.
    HOST_DEVICE void pair_literals() {
        for (i32 at = (1 << TABLE_BITS) - 1; at >= 0; --at) {
            u32 first = table[at], second = table[at >> (first & 255)], both = (first & 255) + (second & 255);
            bool are_bytes = (first & 255) && (second & 255) && first >> 8 < LITERALS && second >> 8 < LITERALS;
            if (are_bytes && both <= TABLE_BITS) table[at] = PAIR | (second >> 8) << 16 | first >> 8 << 8 | both;
        }
    }
    // Decode a code longer than TABLE_BITS; -1 if it is unused.
    HOST_DEVICE i32 decode_long(BitReader& bits) const {
        i32 code = 0, first = 0, index = 0;
        for (i32 length = 1; length <= CODE_BITS; ++length) {
            code |= (i32)(bits.buffer >> (length - 1) & 1);
            if (code - first < counts[length]) {
                bits.skip(length);
                return symbols[index + code - first];
            }
            index += counts[length];
            first = first + counts[length] << 1;
            code <<= 1;
        }
        return -1;
    }
    HOST_DEVICE i32 decode(BitReader& bits) const {
        u32 entry = table[bits.peek(TABLE_BITS)];
        if (!(entry & 255)) return decode_long(bits);
        bits.skip((i32)(entry & 255));
        return (i32)(entry >> 8);
    }
};

// The codes of a block with dynamic or fixed codes.
struct BlockCodes {
    HuffmanCode literals, distances;
    HOST_DEVICE bool build(const u8* lengths, i32 literal_count, i32 distance_count) {
        if (!lengths[END_OF_BLOCK] || !literals.build(lengths, literal_count, true)) return false;
        literals.pair_literals();
        return distances.build(lengths + literal_count, distance_count, true);
    }
    HOST_DEVICE bool build_fixed() {
        u8 lengths[LITERAL_CODES + DISTANCE_CODES];
        for (i32 i = 0; i < LITERAL_CODES; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
        for (i32 i = 0; i < DISTANCE_CODES; ++i) lengths[LITERAL_CODES + i] = 5;
        return build(lengths, LITERAL_CODES, DISTANCE_CODES);
    }
    // Read the dynamic codes of a block, from after its type on.
    HOST_DEVICE bool read(BitReader& bits) {
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
        // Most positions that are not the start of a block fail here, before a table is built.
        if (left || !distances.build(own, LENGTH_CODES, false)) return false;
        for (i32 i = 0; i < literal_count + distance_count;) {
            bits.fill();
            i32 symbol = distances.decode(bits), times = 1;
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

enum BlockStatus { BLOCK_COMPLETE, BLOCK_OUT_OF_SPACE, BLOCK_CORRUPT };

// The inflated output: bytes (T = u8), or bytes and markers of the window before the start (T = u16).
template <class T> struct InflateOutput {
    T* symbols;
    i64 count, capacity;
    i32 min_window_index;  // the smallest index of the window that a marker refers to; WINDOW_BYTES if none does
    HOST_DEVICE void append(u32 symbol) {
        if (warp_lane() == 0) symbols[count] = (T)symbol;
        ++count;
    }
    HOST_DEVICE void copy(i64 distance, i32 length) {
        for (; sizeof(T) > 1 && length && distance > count; --length) {
            i32 index = (i32)(WINDOW_BYTES + count - distance);
            min_window_index = minimum(min_window_index, index);
            append((u32)(LITERALS + index));
        }
        warp_sync();
        if (WARP_WIDTH == 1)
            for (i32 i = 0; i < length; ++i) symbols[count + i] = symbols[count + i - distance];
        else
            for (i32 i = warp_lane(); i < length; i += WARP_WIDTH)
                symbols[count + i] = symbols[count - distance + (i < distance ? i : i % distance)];
        warp_sync();
        count += length;
    }
    HOST_DEVICE BlockStatus inflate_stored(BitReader& bits) {
        bits.skip((i32)(bits.count & 7));
        bits.fill();
        i32 length = (i32)bits.take(16), complement = (i32)bits.take(16);
        if (length != (complement ^ 0xFFFF) || bits.position() / 8 + length > bits.size) return BLOCK_CORRUPT;
        if (count + length > capacity) return BLOCK_OUT_OF_SPACE;
        const u8* bytes = bits.bytes + bits.position() / 8;
        for (i32 i = warp_lane(); i < length; i += WARP_WIDTH) symbols[count + i] = bytes[i];
        warp_sync();
        count += length;
        bits = BitReader(bits.bytes, bits.size, bits.position() + 8 * length);
        return BLOCK_COMPLETE;
    }
    HOST_DEVICE BlockStatus inflate_coded(BitReader& bits, const BlockCodes& codes) {
        const u16 lengths[] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
                131, 163, 195, 227, 258};
        const u8 length_bits[] = {
                0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
        const u16 distances[] = {1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025,
                1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
        while (true) {
            bits.fill();
            if (bits.is_past_end()) return BLOCK_CORRUPT;
            // Three codes have at most 45 bits.
            i32 symbol = 0;
            for (i32 i = 0; i < 3; ++i) {
                u32 entry = codes.literals.table[bits.peek(TABLE_BITS)];
                bits.skip((i32)(entry & 255));
                if (entry & PAIR) {
                    if (count + 2 > capacity) return BLOCK_OUT_OF_SPACE;
                    append(entry >> 8 & 255);
                    append(entry >> 16 & 255);
                    continue;
                }
                symbol = entry & 255 ? (i32)(entry >> 8) : codes.literals.decode_long(bits);
                if (symbol < 0) return BLOCK_CORRUPT;
                if (symbol >= LITERALS) break;
                if (count == capacity) return BLOCK_OUT_OF_SPACE;
                append((u32)symbol);
            }
            if (symbol < LITERALS) continue;
            if (symbol == END_OF_BLOCK) return bits.is_past_end() ? BLOCK_CORRUPT : BLOCK_COMPLETE;
            if (symbol > 285) return BLOCK_CORRUPT;
            bits.fill();
            i32 length = lengths[symbol - 257] + (i32)bits.take(length_bits[symbol - 257]);
            i32 code = codes.distances.decode(bits);
            if (code < 0 || code > 29) return BLOCK_CORRUPT;
            i64 distance = distances[code] + bits.take(code < 4 ? 0 : code / 2 - 1);
            if (distance > count + (sizeof(T) > 1 ? WINDOW_BYTES : 0)) return BLOCK_CORRUPT;
            if (count + length > capacity) return BLOCK_OUT_OF_SPACE;
            copy(distance, length);
        }
    }
    // Inflate one block, from its header on.
    HOST_DEVICE BlockStatus inflate_block(BitReader& bits, BlockCodes& codes) {
        bits.fill();
        u32 type = bits.take(3) >> 1;
        if (type == 0) return inflate_stored(bits);
        bool is_valid = false;
        warp_sync();
        if (warp_lane() == 0) is_valid = type == 1 ? codes.build_fixed() : type == 2 && codes.read(bits);
        warp_sync();
        bits = warp_shuffle(bits, 0);
        return warp_any(is_valid) ? inflate_coded(bits, codes) : BLOCK_CORRUPT;
    }
};
