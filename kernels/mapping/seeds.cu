// Look up seeds: for query positions on a grid, the insertion point in the suffix array and the common prefixes there.
//
// The suffixes next to the insertion point share the longest prefix with the query; the shared prefixes get shorter
// with the distance on both sides. diagonals.cu walks the suffixes outwards.
#include "common/binary_search.cuh"
#include "mapping/seeds.cuh"

// One item per read, selected[item]. Store its number of seeds in counts[item + 1], so that the prefix sums are the
// offsets of the reads' seeds. A read shorter than a seed gets 0.
KERNEL void count_seeds(Items items, Queries queries, const i32* selected OF(selected), i64* counts OF(selected + 1),
        i32 seed_bases, i32 stride) {
    FOR_EACH(item, items) {
        i32 more = queries.lengths[selected[item]] - seed_bases;
        counts[item + 1] = more < 0 ? 0 : 2 * (more / stride + 1);
    }
}

// A seed: the bases of an oriented read from a position on.
struct Seed {
    QuerySuffix<PackedWords> query;  // shorter than a seed if an ambiguous base ends it early
    i64 low;                         // first rank for its leading bases, from the prefix table
};

// Write the insertion rank and shared bases of each seed (item) to `seeds`: orientation 0 first, seeds.stride apart.
// Nothing is shared if an ambiguous base cuts the seed short. Passes over a bunch let the loads of its seeds overlap.
KERNEL void find_seeds(Items items, Queries queries, Reference reference, SuffixArray index, Seeds seeds,
        const i32* selected OF(selected), i32 min_seed_bases, i64 selected_count) {
    FOR_EACH_BUNCH(first, size, items) {
        Seed bunch[BUNCH];
        i64 read = -1;
        for (i32 i = 0; i < size; ++i) {
            read = record_of_item(seeds.offsets + 1, selected_count, first + i, read);
            i64 slot = selected[read], number = first + i - seeds.offsets[read];
            i64 count = (seeds.offsets[read + 1] - seeds.offsets[read]) / 2;
            i32 orientation = number >= count;
            i64 position = (number - orientation * count) * seeds.stride;
            QuerySuffix<PackedWords> query = {
                    queries.bases(slot, orientation), position, queries.lengths[slot] - (i32)position};
            if (queries.flags[slot] & READ_AMBIGUOUS)
                query.length = unambiguous_length(queries.mask(slot, orientation), position, query.length);
            PREFETCH(&index.prefix_table[prefix_code(query, index.table_bases)]);
            bunch[i].query = query;
        }
        for (i32 i = 0; i < size; ++i) {
            bunch[i].low = (i64)index.prefix_table[prefix_code(bunch[i].query, index.table_bases)];
            PREFETCH(&index.suffixes[bunch[i].low]);
        }
        for (i32 i = 0; i < size; ++i)
            PREFETCH(&reference.words[index.suffixes[minimum(bunch[i].low, index.suffix_count - 1)] >> 5]);
        for (i32 i = 0; i < size; ++i) {
            const QuerySuffix<PackedWords>& query = bunch[i].query;
            i64 low = bunch[i].low;
            u16 before = 0, after = 0;
            if (query.length >= min_seed_bases) {
                Ranks range = prefix_range(index.prefix_table, query, index.table_bases);
                low = insertion_point(reference, index.suffixes, query, range.low, range.high);
                if (low > 0) before = (u16)common_prefix(reference, query, index.suffixes[low - 1]);
                if (low < index.suffix_count) after = (u16)common_prefix(reference, query, index.suffixes[low]);
            }
            seeds.ranks[first + i] = (suffix_t)low;
            seeds.before[first + i] = before;
            seeds.after[first + i] = after;
        }
    }
}
