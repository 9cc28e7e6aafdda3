// Stable LSD radix sort of key-value pairs. For each digit, from the lowest: count per section, scan, scatter.
#include "common/radix_digits.cuh"

// keys[i] = values[order[i]].
KERNEL void gather_keys(
        Items items, const u64* values OF(size), const suffix_t* order OF(items), u64* keys OF(items), i64 size) {
    FOR_EACH(item, items) keys[item] = values[order[item]];
}

// Count the keys of each section (an item) of section_size keys by digit: counts[digit * sections + section].
KERNEL void count_digits(BlockItems items, const u64* keys OF(size), i64* counts OF(DIGITS* sections), i64 size,
        i64 sections, i64 section_size, i32 shift) {
    FOR_EACH(section, items) {
        BLOCK_ARRAY(u32, histogram, DIGITS);
        for (i32 digit = block_thread(); digit < DIGITS; digit += BLOCK_WIDTH) histogram[digit] = 0;
        block_sync();
        i64 last = minimum((section + 1) * section_size, size);
        for (i64 i = section * section_size + block_thread(); i < last; i += BLOCK_WIDTH)
            block_atomic_add(&histogram[digit_of(keys[i], shift)], 1);
        block_sync();
        for (i32 digit = block_thread(); digit < DIGITS; digit += BLOCK_WIDTH)
            counts[digit * sections + section] = histogram[digit];
        block_sync();
    }
}

// Sort the pairs stably by the digit at `shift`. An item is a section; ends: inclusive prefix sum of count_digits.
KERNEL void scatter_by_digit(BlockItems items, const u64* keys OF(size), const suffix_t* values OF(size),
        const i64* ends OF(DIGITS* sections), u64* sorted_keys OF(size), suffix_t* sorted_values OF(size), i64 size,
        i64 sections, i64 section_size, i32 shift) {
    FOR_EACH(section, items) {
        BLOCK_ARRAY(i64, next, DIGITS);
        for (i32 digit = block_thread(); digit < DIGITS; digit += BLOCK_WIDTH) {
            i64 cell = digit * sections + section;
            next[digit] = cell ? ends[cell - 1] : 0;
        }
        block_sync();
        i64 first = section * section_size;
        scatter(keys, values, first, minimum(first + section_size, size), shift, next, sorted_keys, sorted_values);
        block_sync();
    }
}
