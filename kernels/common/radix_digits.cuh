// The digits of a radix sort, and the scatter of a section of key-value pairs by one digit.
//
// On the GPU a block sorts a tile at a time by digit in shared memory and writes it from there, so that neighbouring
// threads write neighbouring elements. On the CPU the caches have that effect.
#pragma once
#include "common/portable.cuh"

const i32 DIGIT_BITS = 8;
const i32 DIGITS = 256;

HOST_DEVICE i32 digit_of(u64 key, i32 shift) { return (i32)(key >> shift & (DIGITS - 1)); }  // bits shift to shift + 7

#ifdef __CUDACC__
const i32 TILE_ROWS = 16;
const i32 TILE = BLOCK_WIDTH * TILE_ROWS;
// Write the pairs [first, last) of keys and values in order, each to index next[digit]++ of the sorted arrays; digit:
// digit_of(key, shift). next: a BLOCK_ARRAY of DIGITS indices.
template <class value_t> HOST_DEVICE void scatter(const u64* keys, const value_t* values, i64 first, i64 last,
        i32 shift, i64* next, u64* sorted_keys, value_t* sorted_values) {
    const i32 WARPS = BLOCK_WIDTH / WARP_WIDTH;
    static_assert(DIGITS == 2 * BLOCK_WIDTH, "a thread has two digits");
    __shared__ u64 tile_keys[TILE];
    __shared__ value_t tile_values[TILE];
    __shared__ u32 counts[WARPS][DIGITS], sums[WARPS];
    __shared__ i64 offsets[DIGITS];
    i32 warp = block_thread() / WARP_WIDTH, lane = warp_lane();
    u32 lower_lanes = (1u << lane) - 1;
    for (i64 tile = first; tile < last; tile += TILE) {
        i32 size = (i32)minimum((i64)TILE, last - tile);
        for (i32 d = block_thread(); d < WARPS * DIGITS; d += BLOCK_WIDTH) counts[d / DIGITS][d % DIGITS] = 0;
        __syncthreads();
        // A warp has consecutive rows. Padding after the end has the last digit and comes last within it.
        u64 key[TILE_ROWS];
        value_t value[TILE_ROWS];
        u32 rank[TILE_ROWS];
        i32 own = warp * WARP_WIDTH * TILE_ROWS + lane;
        UNROLL for (i32 row = 0; row < TILE_ROWS; ++row) {
            i32 i = own + row * WARP_WIDTH;
            key[row] = i < size ? keys[tile + i] : ~0ull;
            value[row] = i < size ? values[tile + i] : 0;
        }
        UNROLL for (i32 row = 0; row < TILE_ROWS; ++row) {
            i32 digit = digit_of(key[row], shift);
            u32 equal = ~0u;
            UNROLL for (i32 bit = 0; bit < DIGIT_BITS; ++bit) {
                bool set = digit >> bit & 1;
                u32 with = warp_ballot(set);
                equal &= set ? with : ~with;
            }
            u32 before = counts[warp][digit];
            warp_sync();
            rank[row] = before + (u32)__popc(equal & lower_lanes);
            if (!(equal & lower_lanes)) counts[warp][digit] = before + (u32)__popc(equal);
            warp_sync();
        }
        __syncthreads();
        // The start of each digit in the tile: exclusive sums over the warps, then over the digits.
        u32 totals[2], start = 0;
        UNROLL for (i32 k = 0; k < 2; ++k) {
            totals[k] = 0;
            for (i32 w = 0; w < WARPS; ++w) {
                u32 count = counts[w][2 * block_thread() + k];
                counts[w][2 * block_thread() + k] = totals[k];
                totals[k] += count;
            }
        }
        u32 sum = totals[0] + totals[1];
        for (i32 step = 1; step < WARP_WIDTH; step *= 2) {
            u32 other = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += other;
        }
        if (lane == WARP_WIDTH - 1) sums[warp] = sum;
        __syncthreads();
        for (i32 w = 0; w < warp; ++w) start += sums[w];
        start += sum - totals[0] - totals[1];
        UNROLL for (i32 k = 0; k < 2; ++k) {
            i32 digit = 2 * block_thread() + k;
            for (i32 w = 0; w < WARPS; ++w) counts[w][digit] += start;
            offsets[digit] = next[digit] - start;
            next[digit] += totals[k];
            start += totals[k];
        }
        __syncthreads();
        UNROLL for (i32 row = 0; row < TILE_ROWS; ++row) {
            u32 target = counts[warp][digit_of(key[row], shift)] + rank[row];
            tile_keys[target] = key[row];
            tile_values[target] = value[row];
        }
        __syncthreads();
        for (i32 i = block_thread(); i < size; i += BLOCK_WIDTH) {
            i64 to = offsets[digit_of(tile_keys[i], shift)] + i;
            sorted_keys[to] = tile_keys[i];
            sorted_values[to] = tile_values[i];
        }
        __syncthreads();
    }
}
#else
// Write the pairs [first, last) of keys and values in order, each to index next[digit]++ of the sorted arrays.
template <class value_t> HOST_DEVICE void scatter(const u64* keys, const value_t* values, i64 first, i64 last,
        i32 shift, i64* next, u64* sorted_keys, value_t* sorted_values) {
    for (i64 i = first; i < last; ++i) {
        i64 to = next[digit_of(keys[i], shift)]++;
        sorted_keys[to] = keys[i];
        sorted_values[to] = values[i];
    }
}
#endif
