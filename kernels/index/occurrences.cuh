// Occurrences of reads as rank ranges: row s is for strand first_strand + s (0 forward, 1 reverse complement), and each
// pattern has a column, its slot. A read's occurrences are listed row by row, each row in suffix array order.
#pragma once
#include "common/binary_search.cuh"
#include "index/reference.cuh"

struct Occurrence {
    i64 position;
    bool reversed;
};

struct Occurrences {
    const i32* slot_of OF(pattern_count);
    suffix_t* ranks OF(strand_count* pattern_count);   // rank of the first suffix that starts with the pattern
    suffix_t* counts OF(strand_count* pattern_count);  // number of such suffixes; if it is 0, the rank is 0 too
    i64 pattern_count;
    i32 first_strand, strand_count;
    HOST_DEVICE i64 count(i64 record, i32 row) const { return (i64)counts[row * pattern_count + slot_of[record]]; }
    HOST_DEVICE i64 total(i64 record) const { return count(record, 0) + (strand_count > 1 ? count(record, 1) : 0); }
    HOST_DEVICE Occurrence get(i64 record, i64 number, const suffix_t* suffixes) const {
        i64 first = count(record, 0);
        i32 row = number >= first;
        i64 rank = (i64)ranks[row * pattern_count + slot_of[record]] + number - (row ? first : 0);
        return Occurrence{(i64)suffixes[rank], first_strand + row > 0};
    }
};
