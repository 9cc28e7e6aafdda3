// Sinks for lines of text. One function writes a line: with a CountingSink it computes the line's length, and after a
// prefix sum of the lengths it writes the line with a ByteSink.
#pragma once
#include "common/packed.cuh"

struct CountingSink {
    i64 count;
    HOST_DEVICE void put(u8) { ++count; }
    HOST_DEVICE void copy(const u8*, i64 length) { count += length; }
    HOST_DEVICE void copy_reversed(const u8*, i64 length) { count += length; }
    HOST_DEVICE void bases(const u8*, i64 length, bool) { count += length; }
    HOST_DEVICE void nibbles(const u8*, i64 length, bool) { count += (length + 1) / 2; }
    HOST_DEVICE void phreds(const u8*, i64 length, bool) { count += length; }
    HOST_DEVICE void fill(u8, i64 length) { count += length; }
};

struct ByteSink {
    u8* next;
    HOST_DEVICE void put(u8 byte) { *next++ = byte; }
    HOST_DEVICE void copy(const u8* bytes, i64 length) {
        for (i64 i = 0; i < length; ++i) next[i] = bytes[i];
        next += length;
    }
    HOST_DEVICE void copy_reversed(const u8* bytes, i64 length) {
        for (i64 i = 0; i < length; ++i) next[i] = bytes[length - 1 - i];
        next += length;
    }
    HOST_DEVICE static i32 code(const u8* read, i64 length, i64 i, bool reversed) {
        i32 code = minimum<i32>(base_code(read[reversed ? length - 1 - i : i]), 4);
        return reversed && code < 4 ? 3 - code : code;
    }
    HOST_DEVICE void bases(const u8* read, i64 length, bool reversed) {
        for (i64 i = 0; i < length; ++i) next[i] = code_letter(code(read, length, i, reversed));
        next += length;
    }
    // The 4-bit codes of BAM, two per byte: one bit for each of A, C, G, T, all bits for N.
    HOST_DEVICE void nibbles(const u8* read, i64 length, bool reversed) {
        for (i64 i = 0; i < length; i += 2) {
            u32 high = code(read, length, i, reversed), low = i + 1 < length ? code(read, length, i + 1, reversed) : 5;
            *next++ = (u8)((0xF8421u >> (4 * high) & 15) << 4 | (0x0F8421u >> (4 * low) & 15));
        }
    }
    HOST_DEVICE void phreds(const u8* quality, i64 length, bool reversed) {
        for (i64 i = 0; i < length; ++i) next[i] = (u8)(quality[reversed ? length - 1 - i : i] - '!');
        next += length;
    }
    HOST_DEVICE void fill(u8 byte, i64 length) {
        for (i64 i = 0; i < length; ++i) next[i] = byte;
        next += length;
    }
};

// Write an integer in decimal digits, after a minus if it is negative.
template <class Sink> HOST_DEVICE void put_number(Sink& sink, i64 number) {
    u8 digits[20];
    i32 count = 0;
    if (number < 0) sink.put('-'), number = -number;
    do digits[count++] = (u8)('0' + number % 10);
    while (number /= 10);
    while (count) sink.put(digits[--count]);
}

// Write a tab followed by an integer in decimal digits.
template <class Sink> HOST_DEVICE void put_column(Sink& sink, i64 number) {
    sink.put('\t');
    put_number(sink, number);
}

// Names, bases and qualities of reads in their text, by record; quality_starts: -1 if a read has no qualities.
struct ReadTexts {
    const u8* bytes OF(any);
    const i64* name_starts OF(reads);
    const i32* name_lengths OF(reads);
    const i64* sequence_starts OF(reads);
    const i64* quality_starts OF(reads);
    template <class Sink> HOST_DEVICE void put_name(Sink& sink, i64 record) const {
        if (name_lengths[record]) sink.copy(bytes + name_starts[record], name_lengths[record]);
        else sink.put('*');
    }
};

// Concatenated names: contig c's is [offsets[c], offsets[c + 1]).
struct ContigNames {
    const u8* letters OF(any);
    const i64* offsets OF(contigs + 1);
    template <class Sink> HOST_DEVICE void put(Sink& sink, i64 contig) const {
        sink.copy(letters + offsets[contig], offsets[contig + 1] - offsets[contig]);
    }
};
