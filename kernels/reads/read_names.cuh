// Names of reads.
#pragma once
#include "common/portable.cuh"

const i32 MAX_NAME_LENGTH = 254;

// The length of a name without a trailing /1 or /2, unless the name consists of nothing else.
HOST_DEVICE i64 without_mate_number(const u8* name, i64 length) {
    bool numbered = length > 2 && name[length - 2] == '/' && (name[length - 1] == '1' || name[length - 1] == '2');
    return numbered ? length - 2 : length;
}
