// Vectors of scores: one template over a lane type aligns `width` pairs at once. Narrow is 16-bit, two lanes a register
// on the GPU and sixteen on the CPU; Wide is 32-bit, for scores that 16 bits cannot hold, one lane there and eight here;
// Single is one 32-bit lane on both. Narrow and Wide take the same room. Broad has as many lanes as Narrow, of 32 bits.
#pragma once
#include "common/portable.cuh"

// A letter's code, apart from every other's by more than a mismatch costs.
const i32 SPACING = 2048;

struct Single {
    typedef i32 Item;
    static const i32 width = 1;
    i32 value;

    HOST_DEVICE static Single all(i32 x) { return Single{x}; }
    HOST_DEVICE void set(i32, i32 x) { value = x; }
    HOST_DEVICE i32 get(i32) const { return value; }
    // What a letter is to be equal to in alike().
    HOST_DEVICE static i32 opposite(i32 letter) { return letter; }
};
HOST_DEVICE Single operator+(Single a, Single b) { return Single{a.value + b.value}; }
HOST_DEVICE Single operator^(Single a, Single b) { return Single{a.value ^ b.value}; }
HOST_DEVICE Single larger(Single a, Single b) { return Single{maximum(a.value, b.value)}; }
// Lane by lane: where a == b, x, else y.
HOST_DEVICE Single if_equal(Single a, Single b, Single x, Single y) { return a.value == b.value ? x : y; }
// All bits of the lanes where a < b, none of the others; a - b has no overflow.
HOST_DEVICE Single below(Single a, Single b) { return Single{-(i32)(a.value < b.value)}; }
HOST_DEVICE bool any(Single mask) { return mask.value != 0; }
// Lane by lane: base i of eight that stand in its 16 low bits, times SPACING.
HOST_DEVICE Single spaced_base(Single bases, i32 i) { return Single{(bases.value >> (14 - 2 * i) & 3) * SPACING}; }
HOST_DEVICE Single select(Single mask, Single x, Single y) { return mask.value ? x : y; }
// Lane by lane: the bits shifted up by one, and behind them whether a < b; a - b has no overflow.
HOST_DEVICE Single pushed(Single bits, Single a, Single b) { return Single{bits.value * 2 + (a.value < b.value)}; }

#define LANE template <class Lane> HOST_DEVICE Lane
// Lane by lane the larger of a + b and c; with _or_zero the largest of those and 0.
LANE add_larger(Lane a, Lane b, Lane c) { return larger(a + b, c); }
LANE add_larger_or_zero(Lane a, Lane b, Lane c) { return larger(add_larger(a, b, c), Lane::all(0)); }
LANE largest(Lane a, Lane b, Lane c) { return larger(larger(a, b), c); }
LANE largest_or_zero(Lane a, Lane b, Lane c) { return larger(largest(a, b, c), Lane::all(0)); }
// Lane by lane: x where a letter, a multiple of SPACING, is the one whose opposite is given, else y, which is less than
// SPACING below x.
LANE alike(Lane letter, Lane opposite, Lane x, Lane y) { return if_equal(letter, opposite, x, y); }
#undef LANE

#ifdef __CUDACC__

typedef Single Wide;

struct Narrow {
    typedef i16 Item;
    static const i32 width = 2;
    u32 value;

    HOST_DEVICE static Narrow all(i32 x) { return Narrow{(u32)(x & 0xFFFF) * 0x10001u}; }
    HOST_DEVICE void set(i32 lane, i32 x) {
        u32 shift = 16 * lane;
        value = (value & ~(0xFFFFu << shift)) | (u32)(x & 0xFFFF) << shift;
    }
    HOST_DEVICE i32 get(i32 lane) const { return (i16)(value >> (16 * lane)); }
    HOST_DEVICE static i32 opposite(i32 letter) { return ~letter; }
};
HOST_DEVICE Narrow operator+(Narrow a, Narrow b) { return Narrow{__vadd2(a.value, b.value)}; }
HOST_DEVICE Narrow operator^(Narrow a, Narrow b) { return Narrow{a.value ^ b.value}; }
HOST_DEVICE Narrow larger(Narrow a, Narrow b) { return Narrow{__vmaxs2(a.value, b.value)}; }
HOST_DEVICE Narrow add_larger(Narrow a, Narrow b, Narrow c) {
    return Narrow{__viaddmax_s16x2(a.value, b.value, c.value)};
}
HOST_DEVICE Narrow add_larger_or_zero(Narrow a, Narrow b, Narrow c) {
    return Narrow{__viaddmax_s16x2_relu(a.value, b.value, c.value)};
}
HOST_DEVICE Narrow largest(Narrow a, Narrow b, Narrow c) { return Narrow{__vimax3_s16x2(a.value, b.value, c.value)}; }
HOST_DEVICE Narrow largest_or_zero(Narrow a, Narrow b, Narrow c) {
    return Narrow{__vimax3_s16x2_relu(a.value, b.value, c.value)};
}

HOST_DEVICE Narrow if_equal(Narrow a, Narrow b, Narrow x, Narrow y) {
    u32 mask = __vcmpeq2(a.value, b.value);
    return Narrow{(x.value & mask) | (y.value & ~mask)};
}
// The exclusive or with the complement is -1 where the letters are equal, and less than -SPACING where not.
HOST_DEVICE Narrow alike(Narrow letter, Narrow opposite, Narrow x, Narrow y) {
    return add_larger(letter ^ opposite, x + Narrow::all(1), y);
}
// Bytes of a (0 to 3) and b (4 to 7), by the hexadecimal digits of `chosen` from the lowest on; 8 more takes the sign of
// that byte alone, which __byte_perm does not.
HOST_DEVICE u32 chosen_bytes(u32 a, u32 b, u32 chosen) {
    u32 bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(chosen));
    return bytes;
}
HOST_DEVICE Narrow below(Narrow a, Narrow b) { return Narrow{chosen_bytes(__vsub2(a.value, b.value), 0, 0xBB99)}; }
HOST_DEVICE bool any(Narrow mask) { return mask.value != 0; }
HOST_DEVICE Narrow spaced_base(Narrow bases, i32 i) {
    return Narrow{(bases.value >> (14 - 2 * i) & 0x30003u) * SPACING};
}
HOST_DEVICE Narrow select(Narrow mask, Narrow x, Narrow y) {
    return Narrow{(x.value & mask.value) | (y.value & ~mask.value)};
}
HOST_DEVICE Narrow pushed(Narrow bits, Narrow a, Narrow b) {
    return Narrow{bits.value * 2 + (__vsub2(a.value, b.value) >> 15 & 0x10001u)};
}

#else

template <class T, i32 WIDTH> struct Vector {
    typedef T Item;
    static const i32 width = WIDTH;
    typedef T vector __attribute__((vector_size(WIDTH * sizeof(T))));
    vector value;

    HOST_DEVICE static Vector all(i32 x) { return Vector{(T)x - vector{}}; }
    HOST_DEVICE void set(i32 lane, i32 x) { value[lane] = (T)x; }
    HOST_DEVICE i32 get(i32 lane) const { return value[lane]; }
    HOST_DEVICE static i32 opposite(i32 letter) { return letter; }
};
typedef Vector<i16, 16> Narrow;
typedef Vector<i32, 8> Wide;

#define VECTOR template <class T, i32 WIDTH> HOST_DEVICE
#define V Vector<T, WIDTH>
VECTOR V operator+(V a, V b) { return V{a.value + b.value}; }
VECTOR V operator^(V a, V b) { return V{a.value ^ b.value}; }
VECTOR V larger(V a, V b) { return V{a.value > b.value ? a.value : b.value}; }
VECTOR V if_equal(V a, V b, V x, V y) { return V{a.value == b.value ? x.value : y.value}; }
VECTOR V below(V a, V b) { return V{a.value < b.value}; }
VECTOR bool any(V mask) {
    typedef u64 words __attribute__((vector_size(32)));
    words all = (words)mask.value;
    return (all[0] | all[1] | all[2] | all[3]) != 0;
}
VECTOR V spaced_base(V bases, i32 i) { return V{(bases.value >> (T)(14 - 2 * i) & (T)3) * (T)SPACING}; }
VECTOR V select(V mask, V x, V y) { return V{mask.value ? x.value : y.value}; }
VECTOR V pushed(V bits, V a, V b) { return V{bits.value + bits.value - (a.value < b.value)}; }
#undef V
#undef VECTOR

#endif

struct Broad {
    typedef i32 Item;
    static const i32 width = 2 * Wide::width;
    Wide low, high;

    HOST_DEVICE static Broad all(i32 x) { return Broad{Wide::all(x), Wide::all(x)}; }
    HOST_DEVICE void set(i32 lane, i32 x) { lane < Wide::width ? low.set(lane, x) : high.set(lane - Wide::width, x); }
    HOST_DEVICE i32 get(i32 lane) const { return lane < Wide::width ? low.get(lane) : high.get(lane - Wide::width); }
};
HOST_DEVICE Broad operator+(Broad a, Broad b) { return Broad{a.low + b.low, a.high + b.high}; }
HOST_DEVICE Broad larger(Broad a, Broad b) { return Broad{larger(a.low, b.low), larger(a.high, b.high)}; }
HOST_DEVICE Broad if_equal(Broad a, Broad b, Broad x, Broad y) {
    return Broad{if_equal(a.low, b.low, x.low, y.low), if_equal(a.high, b.high, x.high, y.high)};
}
HOST_DEVICE bool any(Broad mask) { return any(mask.low) || any(mask.high); }

const i32 ALIGNMENT = 64;  // bytes, of the CPU's vectors

// The first place of a buffer where vectors may lie.
template <class T> HOST_DEVICE T* aligned(u8* bytes) { return (T*)(bytes + (-(u64)bytes & (ALIGNMENT - 1))); }
