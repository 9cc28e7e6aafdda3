// Nearest suffixes: where a query would stand in the suffix array, and how much of it the suffixes there share.
//
// The order is over {barrier, A, C, G, T}; a suffix that meets a barrier before it differs from the query is smaller.
// prefix_table[x] counts the suffixes whose first k bases, read as A behind a barrier, are smaller than x.
#pragma once
#include "queries.cuh"
#include "reference.cuh"

// A query from `position` on: its packed words, and how many bases stand before its end or an ambiguous base.
struct Suffix {
    Words bases;
    i64 position;
    i32 length;
};

HOST_DEVICE i32 unambiguous_length(Words mask, i64 position, i32 length) {
    for (i32 i = 0; i < length; i += 32) {
        i32 stop = first_marked(mask.at(position + i));
        if (stop < 32) return minimum(i + stop, length);
    }
    return length;
}

// Equal bases from the query's suffix and from the reference at `place` on; no further than a barrier.
HOST_DEVICE i32 common_prefix(const Reference& reference, Suffix query, i64 place) {
    Words text = reference.packed();
    i32 shared = 0;
    while (shared < query.length) {
        u64 x = differences(query.bases.at(query.position + shared), text.at(place + shared));
        if (x) {
            shared += first_marked(x);
            break;
        }
        shared += 32;
    }
    shared = minimum(shared, query.length);
    return shared ? (i32)reference.reach(place, shared) : 0;
}

// Whether the query's suffix sorts at or before the reference's suffix at `place`, given their common prefix.
HOST_DEVICE bool at_or_before(const Reference& reference, Suffix query, i64 place, i32 shared) {
    if (shared == query.length) return true;
    if (reference.reach(place + shared, 1) == 0) return false;
    return query.bases.base(query.position + shared) < reference.packed().base(place + shared);
}

HOST_DEVICE u32 prefix_code(Suffix query, i32 k) { return (u32)(query.bases.at(query.position) >> (64 - 2 * k)); }

// The number of suffixes in [low, high) bounds that sort before the query's suffix; `rank` within the whole array.
template <class suffix> HOST_DEVICE i64 insertion_point(const Reference& reference, const suffix* suffixes, Suffix query,
                                                        i64 low, i64 high) {
    while (low < high) {
        i64 middle = (low + high) >> 1;
        i64 place = (i64)suffixes[middle];
        if (at_or_before(reference, query, place, common_prefix(reference, query, place))) high = middle;
        else low = middle + 1;
    }
    return low;
}
