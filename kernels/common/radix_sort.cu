// Pairs in the order of their keys, equal ones as they stood: digit by digit from the lowest, each by a count of the digits
// in every section, a prefix sum over digits and sections, and a scatter.
#include "common/radix_digits.cuh"

// An item is a row of an order: its key.
KERNEL void take_keys(Items items, const u64* given OF(size), const suffix_t* order OF(items), u64* keys OF(items),
                      i64 size) {
    FOR_EACH(item, items) keys[item] = given[order[item]];
}

// An item is a section. counts: of the sections' keys with digit 0, then of those with digit 1, and so on.
KERNEL void count_digits(BlockItems items, const u64* keys OF(size), i64* counts OF(DIGITS* sections), i64 size,
                         i64 sections, i64 section_size, i32 shift) {
    FOR_EACH(section, items) {
        BLOCK_ARRAY(u32, found, DIGITS);
        for (i32 digit = block_thread(); digit < DIGITS; digit += BLOCK_WIDTH) found[digit] = 0;
        block_sync();
        i64 last = minimum((section + 1) * section_size, size);
        for (i64 i = section * section_size + block_thread(); i < last; i += BLOCK_WIDTH)
            block_atomic_add(&found[digit_of(keys[i], shift)], 1);
        block_sync();
        for (i32 digit = block_thread(); digit < DIGITS; digit += BLOCK_WIDTH)
            counts[digit * sections + section] = found[digit];
        block_sync();
    }
}

// An item is a section; ends is the inclusive prefix sum of counts.
KERNEL void scatter_by_digit(BlockItems items, const u64* keys OF(size), const suffix_t* values OF(size),
                             const i64* ends OF(DIGITS* sections), u64* sorted_keys OF(size),
                             suffix_t* sorted_values OF(size), i64 size, i64 sections, i64 section_size, i32 shift) {
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
