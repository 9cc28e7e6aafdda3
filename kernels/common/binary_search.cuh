// Binary search.
#pragma once
#include "common/portable.cuh"

// Return the first index in [low, high) for which `is_before`, true up to some index, is false, else `high`.
template <class Test> HOST_DEVICE i64 partition_point(i64 low, i64 high, Test is_before) {
    while (low < high) {
        i64 middle = (low + high) >> 1;
        if (is_before(middle)) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Return the index of the first of `count` ascending numbers that is greater than the bound, else `count`.
template <class T> HOST_DEVICE i64 upper_bound(const T* numbers, i64 count, T bound) {
    i64 low = 0, high = count;
    while (low < high) {
        i64 middle = (low + high) >> 1;
        if (numbers[middle] > bound) high = middle;
        else low = middle + 1;
    }
    return low;
}

// Return the record that owns an item; items are counted through all records. ends: inclusive prefix sums of the
// records' item counts; guess: the record of the previous item, or -1.
HOST_DEVICE i64 record_of_item(const i64* ends, i64 records, i64 item, i64 guess) {
    if (guess >= 0 && item < ends[guess]) return guess;
    if (guess >= 0 && item < ends[guess + 1]) return guess + 1;
    return upper_bound(ends, records - 1, item);
}
