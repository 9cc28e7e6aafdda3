// Building and checking the index: the prefix table, the order of the suffix array.
#include "index/suffix_array.cuh"

// The prefix code of the suffix at a rank; behind the last one all codes have ended.
HOST_DEVICE i64 prefix_code(const Reference& reference, const suffix_t* suffixes, i64 suffix_count, i64 rank,
                            i32 bases) {
    if (rank >= suffix_count) return (i64)1 << (2 * bases);
    i64 place = (i64)suffixes[rank];
    return leading_code(reference.packed().at(place) & leading_mask(reference.reach(place, bases)), bases);
}

// Entries of the table that follow each other, from a multiple of their number on. A suffix fills those of two stretches at
// most, its own and that of the suffix before; fill_gaps the ones between, which are the most where few codes occur.
const i64 STRETCH = 256;

// An item is a suffix, in order. The table's entries between the prefix code of the one before and its own get its rank. One
// is reported whose code is smaller than that before it.
KERNEL void fill_prefix_table(Items items, Reference reference, const suffix_t* suffixes OF(suffix_count),
                              suffix_t* table OF((1 << 2 * table_bases) + 1), u64* error OF(1), i64 suffix_count,
                              i32 table_bases) {
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
            for (; entry <= code && entry % STRETCH; ++entry) table[entry] = (suffix_t)(first + i);
            for (entry = maximum(entry, code / STRETCH * STRETCH); entry <= code; ++entry)
                table[entry] = (suffix_t)(first + i);
        }
    }
}

// An item is a stretch of the table: where no suffix has one of its codes, all its entries get the rank of the next one.
KERNEL void fill_gaps(Items items, Reference reference, const suffix_t* suffixes OF(suffix_count),
                      suffix_t* table OF((1 << 2 * table_bases) + 1), i64 suffix_count, i32 table_bases) {
    FOR_EACH(stretch, items) {
        i64 entry = stretch * STRETCH, low = 0, high = suffix_count;
        while (low < high) {
            i64 middle = (low + high) / 2;
            if (prefix_code(reference, suffixes, suffix_count, middle, table_bases) < entry) low = middle + 1;
            else high = middle;
        }
        if (prefix_code(reference, suffixes, suffix_count, low, table_bases) < entry + STRETCH) continue;
        for (i64 i = 0; i < STRETCH; ++i) table[entry + i] = (suffix_t)low;
    }
}

// An item is a rank: ranks[p] becomes the smallest one of the suffix at p.
KERNEL void rank_places(Items items, const suffix_t* suffixes OF(items), suffix_t* ranks OF(length), i64 length) {
    FOR_EACH(rank, items)
        if ((u64)suffixes[rank] < (u64)length) atomic_min(&ranks[suffixes[rank]], (suffix_t)rank);
}

// An item is a rank: the smallest one is reported whose place is none of a base or has another rank too, or that stands
// wrong behind the one before. An array is in order where every base has one rank, first bases do not fall, and of neighbours
// that begin alike what follows stands in the same order (Burkhardt, Kärkkäinen 2003); of barriers, that of their places.
KERNEL void check_order(Items items, Reference reference, const suffix_t* suffixes OF(items),
                        const suffix_t* ranks OF(length), u64* error OF(1), i64 length) {
    FOR_EACH(rank, items) {
        i64 place = (i64)suffixes[rank], before = rank ? (i64)suffixes[rank - 1] : place;
        bool right = (u64)place < (u64)length && reference.reach(place, 1) && (i64)ranks[place] == rank;
        if (right && rank && (u64)before < (u64)length) {
            i32 step = reference.packed().base(place) - reference.packed().base(before);
            bool ends = !reference.reach(place + 1, 1), ends_before = !reference.reach(before + 1, 1);
            if (ends || ends_before) right = step > 0 || (step == 0 && ends_before && (!ends || before < place));
            else right = step > 0 || (step == 0 && ranks[before + 1] < ranks[place + 1]);
        }
        if (!right) atomic_min(error, (u64)rank);
    }
}
