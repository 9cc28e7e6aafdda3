// Binary search.
#pragma once
#include "common/portable.cuh"

// The first index in [low, high) for which `is_before` is false, else `high`; it is true up to some index, then false.
template <class Test> HOST_DEVICE i64 partition_point(i64 low, i64 high, Test is_before) {
    while (low < high) {
        i64 middle = (low + high) >> 1;
        if (is_before(middle)) low = middle + 1;
        else high = middle;
    }
    return low;
}

// The index of the first of `count` ascending numbers that is greater than the bound, else `count`.
template <class T> HOST_DEVICE i64 upper_bound(const T* numbers, i64 count, T bound) {
    i64 low = 0, high = count;
    while (low < high) {
        i64 middle = (low + high) >> 1;
        if (numbers[middle] > bound) high = middle;
        else low = middle + 1;
    }
    return low;
}

// The record of an item, where items are counted through all records. ends: prefix sums of their
// item counts; guess: the record of the previous item, or -1.
HOST_DEVICE i64 record_of_item(const i64* ends, i64 records, i64 item, i64 guess) {
    if (guess >= 0 && item < ends[guess]) return guess;
    if (guess >= 0 && item < ends[guess + 1]) return guess + 1;
    return upper_bound(ends, records - 1, item);
}
