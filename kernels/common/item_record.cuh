// The record of an item, where items are numbered through all records.
#pragma once
#include "common/portable.cuh"

// ends: the items up to and with each record. guess: the record of the item before, or -1.
HOST_DEVICE i64 item_record(const i64* ends, i64 records, i64 item, i64 guess) {
    if (guess >= 0 && item < ends[guess]) return guess;
    if (guess >= 0 && item < ends[guess + 1]) return guess + 1;
    i64 low = 0, high = records - 1;
    while (low < high) {
        i64 middle = (low + high) >> 1;
        if (ends[middle] > item) high = middle;
        else low = middle + 1;
    }
    return low;
}
