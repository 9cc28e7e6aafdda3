// Building the prefix table and checking the order of the suffix array.
#include "index/suffix_array.cuh"

// Return the code of the first `bases` bases, with A after a barrier, of the suffix with a rank; 4^bases for no suffix.
HOST_DEVICE i64 prefix_code(
        const Reference& reference, const suffix_t* suffixes, i64 suffix_count, i64 rank, i32 bases) {
    if (rank >= suffix_count) return (i64)1 << (2 * bases);
    i64 position = (i64)suffixes[rank];
    return leading_code(reference.packed().at(position) & leading_mask(reference.reach(position, bases)), bases);
}

// Entries of the table in an aligned block. For each suffix, fill_prefix_table fills entries of at most two blocks, of
// the suffix's code and of the previous code. fill_gaps fills the blocks between, most of them if few codes occur.
const i64 GAP_ENTRIES = 256;
// Write the rank of each suffix (item) to the table entries after the previous suffix's code, up to its own code,
// except blocks that fill_gaps fills. error: lowered to a rank whose code is less than the code before it.
KERNEL void fill_prefix_table(Items items, Reference reference, const suffix_t* suffixes OF(suffix_count),
        suffix_t* table OF((1 << 2 * table_bases) + 1), u64* error OF(1), i64 suffix_count, i32 table_bases) {
    FOR_EACH_BUNCH(first, size, items) {
        i64 codes[1 + BUNCH];
        for (i32 i = 0; i <= size; ++i) {
            i64 rank = first - 1 + i;
            if (rank >= 0 && rank < suffix_count) PREFETCH(&reference.words[suffixes[rank] >> 5]);
        }
        for (i32 i = 0; i <= size; ++i) {
            i64 rank = first - 1 + i;
            codes[i] = rank < 0 ? -1 : prefix_code(reference, suffixes, suffix_count, rank, table_bases);
        }
        for (i32 i = 0; i < size; ++i) {
            i64 entry = codes[i] + 1, code = codes[i + 1];
            if (entry > code + 1) atomic_min(error, (u64)(first + i));
            for (; entry <= code && entry % GAP_ENTRIES; ++entry) table[entry] = (suffix_t)(first + i);
            for (entry = maximum(entry, code / GAP_ENTRIES * GAP_ENTRIES); entry <= code; ++entry)
                table[entry] = (suffix_t)(first + i);
        }
    }
}

// Fill blocks (items) of GAP_ENTRIES table entries whose codes start no suffix: they get the next suffix's rank.
KERNEL void fill_gaps(Items items, Reference reference, const suffix_t* suffixes OF(suffix_count),
        suffix_t* table OF((1 << 2 * table_bases) + 1), i64 suffix_count, i32 table_bases) {
    FOR_EACH(gap, items) {
        auto code_of = [&](i64 rank) { return prefix_code(reference, suffixes, suffix_count, rank, table_bases); };
        i64 entry = gap * GAP_ENTRIES;
        i64 low = partition_point(0, suffix_count, [&](i64 rank) { return code_of(rank) < entry; });
        if (code_of(low) < entry + GAP_ENTRIES) continue;
        for (i64 i = 0; i < GAP_ENTRIES; ++i) table[entry + i] = (suffix_t)low;
    }
}

// An item is a rank: ranks[p] becomes the smallest rank of the suffix at position p.
KERNEL void invert_suffixes(Items items, const suffix_t* suffixes OF(items), suffix_t* ranks OF(length), i64 length) {
    FOR_EACH(rank, items)
        if ((u64)suffixes[rank] < (u64)length) atomic_min(&ranks[suffixes[rank]], (suffix_t)rank);
}

// Lower error[0] to the first rank whose position is not a base or has another rank too, or whose suffix sorts before
// the previous suffix. The array is in order if every base has one rank, first bases do not decrease, and neighbours
// with the same first base are ordered like the suffixes one base later (Burkhardt, Kärkkäinen 2003). Neighbours that
// end at barriers are ordered by position. ranks: from invert_suffixes.
KERNEL void check_order(Items items, Reference reference, const suffix_t* suffixes OF(items),
        const suffix_t* ranks OF(length), u64* error OF(1), i64 length) {
    FOR_EACH(rank, items) {
        i64 position = (i64)suffixes[rank], before = rank ? (i64)suffixes[rank - 1] : position;
        bool right = (u64)position < (u64)length && reference.reach(position, 1) && (i64)ranks[position] == rank;
        if (right && rank && (u64)before < (u64)length) {
            i32 step = reference.packed().base(position) - reference.packed().base(before);
            bool ends = !reference.reach(position + 1, 1), ends_before = !reference.reach(before + 1, 1);
            if (ends || ends_before) right = step > 0 || (step == 0 && ends_before && (!ends || before < position));
            else right = step > 0 || (step == 0 && ranks[before + 1] < ranks[position + 1]);
        }
        if (!right) atomic_min(error, (u64)rank);
    }
}
