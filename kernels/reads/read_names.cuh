// The names of reads.
#pragma once
#include "common/portable.cuh"

const i32 LONGEST_NAME = 254;

// Without the /1 or /2 of a mate, unless that is all.
HOST_DEVICE i64 without_mate_number(const u8* name, i64 length) {
    bool numbered = length > 2 && name[length - 2] == '/' && (name[length - 1] == '1' || name[length - 1] == '2');
    return numbered ? length - 2 : length;
}
