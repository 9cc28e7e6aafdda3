// Vectors of scores: templates over a lane type align `width` pairs at once.
//
//     type        bits   width on the GPU   width on the CPU
//     Lanes16     16     2 (a register)     16
//     Lanes32     32     1                  8, for scores that exceed 16 bits
//     Lanes32x2   32     2                  16, the width of Lanes16
//     Lane32      32     1                  1
//
// Lanes16 and Lanes32 have the same size. All operations are lane by lane.
#pragma once
#include "common/portable.cuh"

const i32 CODE_SPACING = 2048;  // the distance of the codes of two letters: more than a mismatch costs

struct Lane32 {
    typedef i32 Item;
    static const i32 width = 1;
    i32 value;
    HOST_DEVICE static Lane32 all(i32 x) { return {x}; }
    HOST_DEVICE void set(i32, i32 x) { value = x; }
    HOST_DEVICE i32 get(i32) const { return value; }
    // The second argument of select_match() that a letter matches.
    HOST_DEVICE static i32 match_code(i32 letter) { return letter; }
};
HOST_DEVICE Lane32 operator+(Lane32 a, Lane32 b) { return {a.value + b.value}; }
HOST_DEVICE Lane32 operator^(Lane32 a, Lane32 b) { return {a.value ^ b.value}; }
HOST_DEVICE Lane32 max(Lane32 a, Lane32 b) { return {maximum(a.value, b.value)}; }
// a == b ? x : y
HOST_DEVICE Lane32 select_equal(Lane32 a, Lane32 b, Lane32 x, Lane32 y) { return a.value == b.value ? x : y; }
// a < b ? all bits : 0; a - b must not overflow.
HOST_DEVICE Lane32 less_mask(Lane32 a, Lane32 b) { return {-(i32)(a.value < b.value)}; }
HOST_DEVICE bool any(Lane32 mask) { return mask.value != 0; }
// Return base i of the eight packed bases in the 16 low bits of each lane, times CODE_SPACING.
HOST_DEVICE Lane32 spaced_base(Lane32 bases, i32 i) { return {(bases.value >> (14 - 2 * i) & 3) * CODE_SPACING}; }
HOST_DEVICE Lane32 select(Lane32 mask, Lane32 x, Lane32 y) { return mask.value ? x : y; }
// bits << 1 | (a < b); a - b must not overflow.
HOST_DEVICE Lane32 shift_in_less(Lane32 bits, Lane32 a, Lane32 b) { return {bits.value * 2 + (a.value < b.value)}; }

#define LANE template <class Lane> HOST_DEVICE Lane
// max(a + b, c); with _or_zero at least 0.
LANE add_max(Lane a, Lane b, Lane c) { return max(a + b, c); }
LANE add_max_or_zero(Lane a, Lane b, Lane c) { return max(add_max(a, b, c), Lane::all(0)); }
LANE max3(Lane a, Lane b, Lane c) { return max(max(a, b), c); }
LANE max3_or_zero(Lane a, Lane b, Lane c) { return max(max3(a, b, c), Lane::all(0)); }
// letter matches match ? x : y. letter: a multiple of CODE_SPACING; match: match_code(a letter); x - y < CODE_SPACING.
LANE select_match(Lane letter, Lane match, Lane x, Lane y) { return select_equal(letter, match, x, y); }
#undef LANE

#ifdef __CUDACC__
typedef Lane32 Lanes32;

struct Lanes16 {
    typedef i16 Item;
    static const i32 width = 2;
    u32 value;
    HOST_DEVICE static Lanes16 all(i32 x) { return {(u32)(x & 0xFFFF) * 0x10001u}; }
    HOST_DEVICE void set(i32 lane, i32 x) {
        u32 shift = 16 * lane;
        value = (value & ~(0xFFFFu << shift)) | (u32)(x & 0xFFFF) << shift;
    }
    HOST_DEVICE i32 get(i32 lane) const { return (i16)(value >> (16 * lane)); }
    HOST_DEVICE static i32 match_code(i32 letter) { return ~letter; }
};
HOST_DEVICE Lanes16 operator+(Lanes16 a, Lanes16 b) { return {__vadd2(a.value, b.value)}; }
HOST_DEVICE Lanes16 operator^(Lanes16 a, Lanes16 b) { return {a.value ^ b.value}; }
HOST_DEVICE Lanes16 max(Lanes16 a, Lanes16 b) { return {__vmaxs2(a.value, b.value)}; }
HOST_DEVICE Lanes16 add_max(Lanes16 a, Lanes16 b, Lanes16 c) { return {__viaddmax_s16x2(a.value, b.value, c.value)}; }
HOST_DEVICE Lanes16 add_max_or_zero(Lanes16 a, Lanes16 b, Lanes16 c) {  // max(a + b, c, 0)
    return {__viaddmax_s16x2_relu(a.value, b.value, c.value)};
}
HOST_DEVICE Lanes16 max3(Lanes16 a, Lanes16 b, Lanes16 c) { return {__vimax3_s16x2(a.value, b.value, c.value)}; }
HOST_DEVICE Lanes16 max3_or_zero(Lanes16 a, Lanes16 b, Lanes16 c) {  // max(a, b, c, 0)
    return {__vimax3_s16x2_relu(a.value, b.value, c.value)};
}

HOST_DEVICE Lanes16 select_equal(Lanes16 a, Lanes16 b, Lanes16 x, Lanes16 y) {  // a == b ? x : y
    u32 mask = __vcmpeq2(a.value, b.value);
    return {(x.value & mask) | (y.value & ~mask)};
}
// Return x where letter matches `match`, else y: the exclusive or is -1 for equal letters, else below -CODE_SPACING.
HOST_DEVICE Lanes16 select_match(Lanes16 letter, Lanes16 match, Lanes16 x, Lanes16 y) {
    return add_max(letter ^ match, x + Lanes16::all(1), y);
}
// Bytes of a (0 to 3) and b (4 to 7), selected by the hexadecimal digits of `selector`, the lowest first. 8 added to a
// digit repeats the byte's sign bit, which __byte_perm cannot do.
HOST_DEVICE u32 permute_bytes(u32 a, u32 b, u32 selector) {
    u32 bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(selector));
    return bytes;
}
// Return all bits of a lane if a < b, else 0; a - b must not overflow.
HOST_DEVICE Lanes16 less_mask(Lanes16 a, Lanes16 b) { return {permute_bytes(__vsub2(a.value, b.value), 0, 0xBB99)}; }
HOST_DEVICE bool any(Lanes16 mask) { return mask.value != 0; }
HOST_DEVICE Lanes16 spaced_base(Lanes16 bases, i32 i) {  // base i times CODE_SPACING
    return {(bases.value >> (14 - 2 * i) & 0x30003u) * CODE_SPACING};
}
HOST_DEVICE Lanes16 select(Lanes16 mask, Lanes16 x, Lanes16 y) {  // mask ? x : y
    return {(x.value & mask.value) | (y.value & ~mask.value)};
}
HOST_DEVICE Lanes16 shift_in_less(Lanes16 bits, Lanes16 a, Lanes16 b) {  // bits << 1 | (a < b)
    return {bits.value * 2 + (__vsub2(a.value, b.value) >> 15 & 0x10001u)};
}
#else
template <class T, i32 WIDTH> struct Vector {
    typedef T Item;
    static const i32 width = WIDTH;
    typedef T vector __attribute__((vector_size(WIDTH * sizeof(T))));
    vector value;
    HOST_DEVICE static Vector all(i32 x) { return {(T)x - vector{}}; }
    HOST_DEVICE void set(i32 lane, i32 x) { value[lane] = (T)x; }
    HOST_DEVICE i32 get(i32 lane) const { return value[lane]; }
    HOST_DEVICE static i32 match_code(i32 letter) { return letter; }
};
typedef Vector<i16, 16> Lanes16;
typedef Vector<i32, 8> Lanes32;

#define VECTOR template <class T, i32 WIDTH> HOST_DEVICE
#define V Vector<T, WIDTH>
VECTOR V operator+(V a, V b) { return {a.value + b.value}; }
VECTOR V operator^(V a, V b) { return {a.value ^ b.value}; }
VECTOR V max(V a, V b) { return {a.value > b.value ? a.value : b.value}; }
VECTOR V select_equal(V a, V b, V x, V y) { return {a.value == b.value ? x.value : y.value}; }
VECTOR V less_mask(V a, V b) { return {a.value < b.value}; }
VECTOR bool any(V mask) {
    typedef u64 words __attribute__((vector_size(32)));
    words all = (words)mask.value;
    return (all[0] | all[1] | all[2] | all[3]) != 0;
}
VECTOR V spaced_base(V bases, i32 i) { return {(bases.value >> (T)(14 - 2 * i) & (T)3) * (T)CODE_SPACING}; }
VECTOR V select(V mask, V x, V y) { return {mask.value ? x.value : y.value}; }
VECTOR V shift_in_less(V bits, V a, V b) { return {bits.value + bits.value - (a.value < b.value)}; }
#undef V
#undef VECTOR
#endif

struct Lanes32x2 {
    typedef i32 Item;
    static const i32 width = 2 * Lanes32::width;
    Lanes32 low, high;
    HOST_DEVICE static Lanes32x2 all(i32 x) { return {Lanes32::all(x), Lanes32::all(x)}; }
    HOST_DEVICE void set(i32 lane, i32 x) { lane < width / 2 ? low.set(lane, x) : high.set(lane - width / 2, x); }
    HOST_DEVICE i32 get(i32 lane) const { return lane < width / 2 ? low.get(lane) : high.get(lane - width / 2); }
};
HOST_DEVICE Lanes32x2 operator+(Lanes32x2 a, Lanes32x2 b) { return {a.low + b.low, a.high + b.high}; }
HOST_DEVICE Lanes32x2 max(Lanes32x2 a, Lanes32x2 b) { return {max(a.low, b.low), max(a.high, b.high)}; }
HOST_DEVICE Lanes32x2 select_equal(Lanes32x2 a, Lanes32x2 b, Lanes32x2 x, Lanes32x2 y) {  // a == b ? x : y
    return {select_equal(a.low, b.low, x.low, y.low), select_equal(a.high, b.high, x.high, y.high)};
}
HOST_DEVICE bool any(Lanes32x2 mask) { return any(mask.low) || any(mask.high); }

const i32 ALIGNMENT = 64;  // bytes of the CPU's vectors
// Return the first address in a buffer that is a multiple of ALIGNMENT.
template <class T> HOST_DEVICE T* aligned(u8* bytes) { return (T*)(bytes + (-(u64)bytes & (ALIGNMENT - 1))); }
