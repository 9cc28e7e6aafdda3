// Seeds: for query positions on a grid, the insertion point in the suffix array and the prefixes shared there.
//
// The neighbours of that point are the suffixes that share the longest prefix with the query from the position on, and
// their common prefixes fall monotonically on both sides: windows.cu walks them.
#include "search/seeds.cuh"

// counts[item]: the seeds of the read selected[item - 1], none of the first item, so that their prefix sums are where each
// read's seeds begin. A read that is shorter than a seed has none.
KERNEL void count_seeds(i64 begin, i64 end, Queries queries, const i32* selected OF(selected),
                        i64* counts OF(selected + 1), i32 seed_bases, i32 stride) {
    FOR_EACH(item, begin, end) {
        i32 more = item ? queries.lengths[selected[item - 1]] - seed_bases : -1;
        counts[item] = more < 0 ? 0 : 2 * (more / stride + 1);
    }
}

// An item is a query: orientation (item & 1) of the read selected[item >> 1]. Its seeds are seeds.offsets[item >> 1] on,
// those of orientation 0 first, position p = index * seeds.stride. Where an ambiguous base leaves less than a seed nothing is
// shared. Several passes, so that the loads of a query's positions are under way together.
KERNEL void find_seeds(i64 begin, i64 end, Queries queries, Reference reference, SuffixArray index, Seeds seeds,
                       const i32* selected OF(selected), i32 shortest_seed) {
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item >> 1];
        i32 orientation = (i32)(item & 1);
        i64 first = seeds.offsets[item >> 1], count = (seeds.offsets[(item >> 1) + 1] - first) / 2;
        first += orientation * count;
        i32 length = queries.lengths[slot];
        Words bases = queries.bases(slot, orientation), mask = queries.mask(slot, orientation);
        for (i64 i = 0; i < count; ++i)
            PREFETCH(&index.prefix_table[prefix_code(Suffix{bases, i * seeds.stride, length}, index.table_bases)]);
        for (i64 i = 0; i < count; ++i) {
            suffix_t low = index.prefix_table[prefix_code(Suffix{bases, i * seeds.stride, length}, index.table_bases)];
            seeds.ranks[first + i] = low;
            PREFETCH(&index.suffixes[low]);
        }
        for (i64 i = 0; i < count; ++i)
            PREFETCH(
                &reference.words[index.suffixes[minimum((i64)seeds.ranks[first + i], index.suffix_count - 1)] >> 5]);
        for (i64 i = 0; i < count; ++i) {
            Suffix query = {bases, i * seeds.stride, length - (i32)i * seeds.stride};
            if (queries.flags[slot] & READ_AMBIGUOUS)
                query.length = unambiguous_length(mask, query.position, query.length);
            u16 before = 0, after = 0;
            if (query.length >= shortest_seed) {
                Ranks range = prefix_range(index.prefix_table, query, index.table_bases);
                i64 low = insertion_point(reference, index.suffixes, query, range.low, range.high);
                seeds.ranks[first + i] = (suffix_t)low;
                if (low > 0) before = (u16)common_prefix(reference, query, index.suffixes[low - 1]);
                if (low < index.suffix_count) after = (u16)common_prefix(reference, query, index.suffixes[low]);
            }
            seeds.before[first + i] = before;
            seeds.after[first + i] = after;
        }
    }
}
