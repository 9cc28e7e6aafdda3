// Suffix array search: the insertion rank of a query, and the length of its common prefix with the suffixes there.
//
// The order is over {barrier, A, C, G, T}; a suffix that meets a barrier before it differs from the query is smaller.
// prefix_table[x] counts the suffixes whose first k bases, with A after a barrier, have a code smaller than x.
#pragma once
#include "reads/queries.cuh"
#include "index/reference.cuh"

struct SuffixArray {
    const suffix_t* suffixes OF(suffix_count);
    const suffix_t* prefix_table OF((1 << 2 * table_bases) + 1);
    i64 suffix_count;
    i32 table_bases;
};

// The suffix of a query at `position`: packed bases, and the number of bases before the end or an ambiguous base.
template <class Text> struct QuerySuffix {
    Text bases;
    i64 position;
    i32 length;
};
template <class Text> QuerySuffix(Text, i64, i32) -> QuerySuffix<Text>;

// Return the number of bases from `position` on before a base that the mask marks as ambiguous, at most `length`.
HOST_DEVICE i32 unambiguous_length(PackedWords mask, i64 position, i32 length) {
    for (i32 i = 0; i < length; i += 32) {
        i32 stop = first_set_base(mask.at(position + i));
        if (stop < 32) return minimum(i + stop, length);
    }
    return length;
}

// Return the length of the common prefix of the query and the reference's suffix at `position`, up to a barrier.
template <class Text>
HOST_DEVICE i32 common_prefix(const Reference& reference, const QuerySuffix<Text>& query, i64 position) {
    PackedWords text = reference.packed();
    i32 shared = 0;
    while (shared < query.length) {
        u64 x = mismatch_mask(query.bases.at(query.position + shared), text.at(position + shared));
        if (x) {
            shared += first_set_base(x);
            break;
        }
        shared += 32;
    }
    shared = minimum(shared, query.length);
    return shared ? (i32)reference.reach(position, shared) : 0;
}

// Compare the reference's suffix at `start` with the query: 0 if it starts with the query, -1 if less, 1 if greater.
template <class Text> HOST_DEVICE i32 compare(const Reference& reference, i64 start, const QuerySuffix<Text>& query) {
    PackedReader text(reference.words, start);
    i32 shared = 0;
    u64 mine = 0, its = 0;
    for (; shared < query.length; shared += 32) {
        mine = text.next(), its = query.bases.at(query.position + shared);
        if (query.length - shared < 32)
            mine &= leading_mask(query.length - shared), its &= leading_mask(query.length - shared);
        if (mine != its) break;
    }
    if (mine < its) return -1;
    // A barrier before the difference makes the suffix smaller. A barrier at the difference is packed as A, the
    // smallest base, so that the comparison above has already decided.
    i32 equal = mine == its ? query.length : shared + first_set_base(mismatch_mask(mine, its));
    return reference.reach(start, equal) < equal ? -1 : mine != its;
}

// Return the index of the query in a prefix table: the code of its first k bases, with A after its end.
template <class Text> HOST_DEVICE i64 prefix_code(const QuerySuffix<Text>& query, i32 k) {
    return leading_code(query.bases.at(query.position) & leading_mask(query.length), k);
}

struct Ranks {
    i64 low, high;
};

// Return a range of ranks that contains all suffixes starting with the query: for a query of k or more bases, the
// suffixes with its first k bases; for a shorter query also some suffixes before them that a barrier cuts short.
template <class suffix, class Text>
HOST_DEVICE Ranks prefix_range(const suffix* prefix_table, const QuerySuffix<Text>& query, i32 k) {
    i64 code = prefix_code(query, k), codes = (i64)1 << (2 * maximum(k - query.length, 0));
    return Ranks{(i64)prefix_table[code], (i64)prefix_table[code + codes]};
}

// Return the number of suffixes smaller than the query's; it is known to lie in [low, high].
template <class suffix, class Text> HOST_DEVICE i64 insertion_point(
        const Reference& reference, const suffix* suffixes, const QuerySuffix<Text>& query, i64 low, i64 high) {
    while (low < high) {
        i64 middle = (low + high) >> 1;
        if (compare(reference, (i64)suffixes[middle], query) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Return the first rank after `inside` whose suffix does not start with the query, or `limit`. Steps grow from 1.
template <class suffix, class Text> HOST_DEVICE i64 run_end(
        const Reference& reference, const suffix* suffixes, const QuerySuffix<Text>& query, i64 inside, i64 limit) {
    i64 outside = limit;
    for (i64 step = 1; limit - inside > step; step *= 2) {
        if (compare(reference, (i64)suffixes[inside + step], query)) {
            outside = inside + step;
            break;
        }
        inside += step;
    }
    while (outside - inside > 1) {
        i64 middle = (inside + outside) >> 1;
        if (compare(reference, (i64)suffixes[middle], query)) outside = middle;
        else inside = middle;
    }
    return outside;
}

// Return the ranks of the suffixes that start with the query; all of them lie in `range`.
template <class suffix, class Text> HOST_DEVICE Ranks equal_range(
        const Reference& reference, const suffix* suffixes, const QuerySuffix<Text>& query, Ranks range) {
    i64 low = range.low, high = range.high;
    bool found = false;
    while (low < high) {
        i64 middle = (low + high) >> 1;
        i32 order = compare(reference, (i64)suffixes[middle], query);
        if (order < 0) low = middle + 1;
        else high = middle, found = order == 0;
    }
    return Ranks{low, found ? run_end(reference, suffixes, query, low, range.high) : low};
}
