// The CRC-32 of gzip (RFC 1952, section 8). Remainders are polynomials over GF(2), the highest power in the lowest bit.
#pragma once
#include "common/portable.cuh"

const u32 CRC_POLYNOMIAL = 0xEDB88320, CRC_ONE = 1u << 31;

HOST_DEVICE u32 crc_times_x(u32 crc) { return crc >> 1 ^ (crc & 1 ? CRC_POLYNOMIAL : 0); }  // the product with x
// Return the product of two remainders, modulo the polynomial.
HOST_DEVICE u32 crc_product(u32 a, u32 b) {
    u32 product = 0;
    for (u32 power = CRC_ONE; power; power >>= 1, b = crc_times_x(b))
        if (a & power) product ^= b;
    return product;
}

// Return the factor by which appending `bytes` zero bytes multiplies the remainder.
HOST_DEVICE u32 crc_shift(i64 bytes) {
    u32 shift = CRC_ONE, power = CRC_ONE >> 8;
    for (; bytes; bytes >>= 1, power = crc_product(power, power))
        if (bytes & 1) shift = crc_product(shift, power);
    return shift;
}

// Return the CRC-32 of `count` bytes in every lane. Each lane computes the remainder of one part; their sum is the CRC.
HOST_DEVICE u32 warp_crc32(const u8* bytes, i64 count) {
    i64 each = (count + WARP_WIDTH - 1) / WARP_WIDTH;
    i64 first = minimum(warp_lane() * each, count), last = minimum(first + each, count);
    u32 crc = warp_lane() == 0 ? ~0u : 0;
    for (i64 i = first; i < last; ++i) {
        crc ^= bytes[i];
        for (i32 bit = 0; bit < 8; ++bit) crc = crc_times_x(crc);
    }
    crc = crc_product(crc, crc_shift(count - last));
    for (i32 step = 1; step < WARP_WIDTH; step *= 2) crc ^= warp_shuffle(crc, warp_lane() ^ step);
    return ~crc;
}
