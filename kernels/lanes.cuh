// Vectors of scores: one template over a lane type aligns `width` pairs at once. Narrow is 16-bit, two lanes a register
// on the GPU and sixteen on the CPU; Single is one 32-bit lane, for scores that 16 bits cannot hold.
#pragma once
#include "portable.cuh"

struct Single {
    static const i32 width = 1;
    i32 value;

    HOST_DEVICE static Single all(i32 x) { return Single{x}; }
    HOST_DEVICE void set(i32, i32 x) { value = x; }
    HOST_DEVICE i32 get(i32) const { return value; }
};
HOST_DEVICE Single operator+(Single a, Single b) { return Single{a.value + b.value}; }
HOST_DEVICE Single operator^(Single a, Single b) { return Single{a.value ^ b.value}; }
HOST_DEVICE Single larger(Single a, Single b) { return Single{maximum(a.value, b.value)}; }
// Lane by lane the larger of a + b and c; with _or_zero the largest of those and 0.
HOST_DEVICE Single add_larger(Single a, Single b, Single c) { return Single{maximum(a.value + b.value, c.value)}; }
HOST_DEVICE Single add_larger_or_zero(Single a, Single b, Single c) { return Single{maximum(maximum(a.value + b.value, c.value), 0)}; }
// Lane by lane: where a == b, x, else y.
HOST_DEVICE Single if_equal(Single a, Single b, Single x, Single y) { return a.value == b.value ? x : y; }

#ifdef __CUDACC__

struct Narrow {
    static const i32 width = 2;
    u32 value;

    HOST_DEVICE static Narrow all(i32 x) { return Narrow{(u32)(x & 0xFFFF) * 0x10001u}; }
    HOST_DEVICE void set(i32 lane, i32 x) {
        u32 shift = 16 * lane;
        value = (value & ~(0xFFFFu << shift)) | (u32)(x & 0xFFFF) << shift;
    }
    HOST_DEVICE i32 get(i32 lane) const { return (i16)(value >> (16 * lane)); }
};
HOST_DEVICE Narrow operator+(Narrow a, Narrow b) { return Narrow{__vadd2(a.value, b.value)}; }
HOST_DEVICE Narrow operator^(Narrow a, Narrow b) { return Narrow{a.value ^ b.value}; }
HOST_DEVICE Narrow larger(Narrow a, Narrow b) { return Narrow{__vmaxs2(a.value, b.value)}; }
HOST_DEVICE Narrow add_larger(Narrow a, Narrow b, Narrow c) { return Narrow{__viaddmax_s16x2(a.value, b.value, c.value)}; }
HOST_DEVICE Narrow add_larger_or_zero(Narrow a, Narrow b, Narrow c) {
    return Narrow{__viaddmax_s16x2_relu(a.value, b.value, c.value)};
}
HOST_DEVICE Narrow if_equal(Narrow a, Narrow b, Narrow x, Narrow y) {
    u32 mask = __vcmpeq2(a.value, b.value);
    return Narrow{(x.value & mask) | (y.value & ~mask)};
}

#else

struct Narrow {
    static const i32 width = 16;
    typedef i16 vector __attribute__((vector_size(32)));
    vector value;

    HOST_DEVICE static Narrow all(i32 x) { return Narrow{(i16)x - vector{}}; }
    HOST_DEVICE void set(i32 lane, i32 x) { value[lane] = (i16)x; }
    HOST_DEVICE i32 get(i32 lane) const { return value[lane]; }
};
HOST_DEVICE Narrow operator+(Narrow a, Narrow b) { return Narrow{a.value + b.value}; }
HOST_DEVICE Narrow operator^(Narrow a, Narrow b) { return Narrow{a.value ^ b.value}; }
HOST_DEVICE Narrow larger(Narrow a, Narrow b) { return Narrow{a.value > b.value ? a.value : b.value}; }
HOST_DEVICE Narrow add_larger(Narrow a, Narrow b, Narrow c) { return larger(a + b, c); }
HOST_DEVICE Narrow add_larger_or_zero(Narrow a, Narrow b, Narrow c) { return larger(larger(a + b, c), Narrow{}); }
HOST_DEVICE Narrow if_equal(Narrow a, Narrow b, Narrow x, Narrow y) { return Narrow{a.value == b.value ? x.value : y.value}; }

#endif
