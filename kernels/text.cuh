// Lines of text from arrays. One function writes a line into a sink; a sink that only counts gives the lengths, and a
// prefix sum of those every line's place.
#pragma once
#include "packed.cuh"

struct CountingSink {
    i64 count;

    HOST_DEVICE void put(u8) { ++count; }
    HOST_DEVICE void copy(const u8*, i64 length) { count += length; }
    HOST_DEVICE void copy_reversed(const u8*, i64 length) { count += length; }
    HOST_DEVICE void bases(const u8*, i64 length, bool) { count += length; }
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
    HOST_DEVICE void bases(const u8* read, i64 length, bool reversed) {
        for (i64 i = 0; i < length; ++i) {
            i32 code = minimum<i32>(base_code(read[reversed ? length - 1 - i : i]), 4);
            next[i] = code_letter(reversed && code < 4 ? 3 - code : code);
        }
        next += length;
    }
};

template <class Sink> HOST_DEVICE void put_number(Sink& sink, i64 number) {
    u8 digits[20];
    i32 count = 0;
    if (number < 0) sink.put('-'), number = -number;
    do digits[count++] = (u8)('0' + number % 10);
    while (number /= 10);
    while (count) sink.put(digits[--count]);
}

template <class Sink> HOST_DEVICE void put_tag(Sink& sink, char a, char b, char type) {
    sink.put('\t');
    sink.put((u8)a);
    sink.put((u8)b);
    sink.put(':');
    sink.put((u8)type);
    sink.put(':');
}
