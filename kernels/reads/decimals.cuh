// Write floats as text in integer arithmetic, exactly as C's printf with %g, on every machine.
#pragma once
#include "common/text.cuh"

const u32 LIMB = 1000000000;  // nine digits
const i32 LIMBS = 13;         // the smallest float is 2^-149, which has 105 digits
const i32 SHOWN = 6;          // digits that %g shows
// A natural number, lowest limb first.
struct Natural {
    u32 limbs[LIMBS];
    i32 count;
    HOST_DEVICE void multiply(u32 factor) {
        u64 carry = 0;
        for (i32 i = 0; i < count; ++i) {
            carry += (u64)limbs[i] * factor;
            limbs[i] = (u32)(carry % LIMB);
            carry /= LIMB;
        }
        if (carry) limbs[count++] = (u32)carry;
    }
    HOST_DEVICE void multiply_by_power(u32 base, i32 power) {
        for (; power; --power) multiply(base);
    }
    // The digit of 10^exponent; 0 if the exponent is negative.
    HOST_DEVICE u32 digit(i32 exponent) const {
        if (exponent < 0) return 0;
        u32 limb = limbs[exponent / 9];
        for (i32 i = exponent % 9; i; --i) limb /= 10;
        return limb % 10;
    }
    HOST_DEVICE i32 digits() const {
        i32 found = 9 * count;
        while (!digit(found - 1)) --found;
        return found;
    }
    HOST_DEVICE bool any_below(i32 exponent) const {
        for (i32 i = 0; i < exponent; ++i)
            if (digit(i)) return true;
        return false;
    }
};

// Write a text that ends with NUL.
template <class Sink> HOST_DEVICE void put_text(Sink& sink, const char* text) {
    for (; *text; ++text) sink.put((u8)*text);
}
// Write `count` decimal digits as %g does; the first digit counts 10^exponent. Trailing zeros are omitted.
template <class Sink> HOST_DEVICE void put_digits(Sink& sink, const u8* digits, i32 count, i32 exponent) {
    bool is_scientific = exponent < -4 || exponent >= SHOWN;
    i32 point = is_scientific ? 0 : exponent;  // after this digit
    if (point < 0) put_text(sink, "0.");
    for (i32 i = point + 1; i < 0; ++i) sink.put('0');
    for (i32 i = 0; i < maximum(count, point + 1); ++i) {
        if (i == point + 1 && i > 0) sink.put('.');
        sink.put(i < count ? digits[i] : (u8)'0');
    }
    if (!is_scientific) return;
    sink.put('e');
    sink.put(exponent < 0 ? '-' : '+');
    i32 size = maximum(exponent, -exponent);
    if (size < 10) sink.put('0');
    put_number(sink, size);
}

// Write a float, given by its bits, as C's printf does with %g.
template <class Sink> NOINLINE void put_float(Sink& sink, u32 bits) {
    if (bits >> 31) sink.put('-');
    i32 power = (i32)(bits >> 23 & 255);
    u32 mantissa = bits & 0x7FFFFF;
    if (power == 255) return put_text(sink, mantissa ? "nan" : "inf");
    if (!power && !mantissa) return sink.put('0');
    Natural number = {{power ? mantissa | 0x800000 : mantissa}, 1};
    power = maximum(power, 1) - 150;
    // m * 2^-p is m * 5^p with p digits after the point.
    if (power < 0) number.multiply_by_power(5, -power);
    else number.multiply_by_power(2, power);
    i32 digit_count = number.digits(), rest = digit_count - SHOWN - 1;
    u32 shown = 0, next = number.digit(rest);
    for (i32 i = 1; i <= SHOWN; ++i) shown = 10 * shown + number.digit(digit_count - i);
    // Round to nearest, ties to even.
    if (next > 5 || (next == 5 && (shown % 2 || number.any_below(rest)))) ++shown;
    i32 exponent = digit_count - 1 + minimum(power, 0);
    if (shown == 1000000) shown = 100000, ++exponent;
    u8 digits[SHOWN];
    for (i32 i = SHOWN - 1; i >= 0; --i, shown /= 10) digits[i] = (u8)('0' + shown % 10);
    i32 count = SHOWN;
    while (digits[count - 1] == '0') --count;
    put_digits(sink, digits, count, exponent);
}
