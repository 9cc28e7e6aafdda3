// Building and checking the index: the codes of its bases, the prefix table, the order of the suffix array.
#include "index/suffix_array.cuh"

// An item is a word of 32 bases; codes: a barrier's number, in order, and behind all of them A, C, G and T.
KERNEL void unpack_codes(i64 begin, i64 end, Reference reference, u8* codes OF(length), i64 length) {
    i64 first_base = reference.barriers - 1;  // the last barrier stands behind the end
    FOR_EACH(word, begin, end) {
        i64 place = word * 32;
        u64 bases = reference.words[word], barriers = reference.barriers_at(place);
        for (i64 i = 0; i < minimum((i64)32, length - place); ++i, bases <<= 2, barriers <<= 2)
            codes[place + i] =
                (u8)(barriers >> 62 ? reference.barrier_behind(place + i) : first_base + (i64)(bases >> 62));
    }
}

// Entries after which a suffix that has many looks whether they are worth filling.
const i64 STRETCH = 256;

// An item is a suffix, in order. The table's entries between the prefix code of the one before and its own get its rank. One
// is reported whose code is smaller than that before it; where there are such ones the entries between all could be
// boundless, and the rest is left undone.
KERNEL void fill_prefix_table(i64 begin, i64 end, Reference reference, const suffix_t* suffixes OF(suffix_count),
                              suffix_t* table OF((1 << 2 * table_bases) + 1), u64* error OF(1), i64 suffix_count,
                              i32 table_bases) {
    FOR_EACH_BUNCH(first, size, begin, end) {
        i64 codes[1 + BUNCH];
        for (i32 i = 0; i <= size; ++i) {
            i64 rank = first - 1 + i;
            if (rank >= 0 && rank < suffix_count) PREFETCH(&reference.words[suffixes[rank] >> 5]);
        }
        for (i32 i = 0; i <= size; ++i) {
            i64 rank = first - 1 + i;
            codes[i] = rank < 0 ? -1 : (i64)1 << (2 * table_bases);
            if (rank < 0 || rank >= suffix_count) continue;
            i64 place = (i64)suffixes[rank];
            u64 bases = reference.packed().at(place) & first_bases(reference.reach(place, table_bases));
            codes[i] = leading_code(bases, table_bases);
        }
        for (i32 i = 0; i < size; ++i) {
            if (codes[i + 1] < codes[i]) atomic_min(error, (u64)(first + i));
            for (i64 x = codes[i] + 1; x <= codes[i + 1]; ++x) {
                if ((x - codes[i]) % STRETCH == 0 && fresh(error) != ~0ull) return;
                table[x] = (suffix_t)(first + i);
            }
        }
    }
}

// An item is a rank: ranks[p] becomes the smallest one of the suffix at p.
KERNEL void rank_places(i64 begin, i64 end, const suffix_t* suffixes OF(items), suffix_t* ranks OF(length),
                        i64 length) {
    FOR_EACH(rank, begin, end)
        if ((u64)suffixes[rank] < (u64)length) atomic_min(&ranks[suffixes[rank]], (suffix_t)rank);
}

// An item is a rank: the smallest one is reported whose place is none of a base or has another rank too, or that stands
// wrong behind the one before. An array is in order where every base has one rank, first bases do not fall, and of neighbours
// that begin alike what follows stands in the same order (Burkhardt, Kärkkäinen 2003); of barriers, that of their places.
KERNEL void check_order(i64 begin, i64 end, Reference reference, const suffix_t* suffixes OF(items),
                        const suffix_t* ranks OF(length), u64* error OF(1), i64 length) {
    FOR_EACH(rank, begin, end) {
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
