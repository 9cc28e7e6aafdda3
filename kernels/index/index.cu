// Building and checking the index: the codes of its bases, the prefix table, the order of the suffix array.
#include "index/suffix_array.cuh"

// An item is a word of 32 bases; codes: 0 a barrier, 1..4 A, C, G, T, as the suffix sorter reads them.
KERNEL void unpack_codes(i64 begin, i64 end, Reference reference, u8* codes OF(length), i64 length) {
    FOR_EACH(word, begin, end) {
        i64 place = word * 32;
        u64 bases = reference.words[word], barriers = reference.barriers_at(place);
        for (i64 i = 0; i < minimum((i64)32, length - place); ++i, bases <<= 2, barriers <<= 2)
            codes[place + i] = (u8)(barriers >> 62 ? 0 : (bases >> 62) + 1);
    }
}

// An item is a suffix, in order. The table's entries between the prefix code of the one before and its own get its rank.
KERNEL void fill_prefix_table(i64 begin, i64 end, Reference reference, const suffix_t* suffixes OF(suffix_count),
                              suffix_t* table OF((1 << 2 * table_bases) + 1), i64 suffix_count, i32 table_bases) {
    FOR_EACH(rank, begin, end) {
        i64 code[2];
        for (i32 i = 0; i < 2; ++i) {
            i64 at = rank - 1 + i;
            if (at < 0 || at == suffix_count) {
                code[i] = at < 0 ? -1 : (i64)1 << (2 * table_bases);
                continue;
            }
            i64 place = (i64)suffixes[at];
            u64 bases = reference.packed().at(place) & first_bases(reference.reach(place, table_bases));
            code[i] = (i64)(bases >> (64 - 2 * table_bases));
        }
        for (i64 x = code[0] + 1; x <= code[1]; ++x) table[x] = (suffix_t)rank;
    }
}

// An item is a rank: ranks[p] is that of the suffix at p.
KERNEL void rank_places(i64 begin, i64 end, const suffix_t* suffixes OF(items), suffix_t* ranks OF(length),
                        i64 length) {
    FOR_EACH(rank, begin, end)
        if ((u64)suffixes[rank] < (u64)length) ranks[suffixes[rank]] = (suffix_t)rank;
}

// An item is a rank. doubts[0] becomes the smallest one whose place is none of a base, or has another rank too; doubts[1]
// the smallest one that may stand wrong. An array is in order where every base has one rank, first bases do not fall, and
// of neighbours that begin alike what follows stands in the same order (Burkhardt, Kärkkäinen 2003).
KERNEL void doubt_order(i64 begin, i64 end, Reference reference, const suffix_t* suffixes OF(items),
                        const suffix_t* ranks OF(length), u64* doubts OF(2), i64 length) {
    FOR_EACH(rank, begin, end) {
        i64 place = (i64)suffixes[rank], before = rank ? (i64)suffixes[rank - 1] : place;
        if ((u64)place >= (u64)length || !reference.reach(place, 1) || (i64)ranks[place] != rank) {
            atomic_min(doubts, (u64)rank);
            continue;
        }
        if (rank == 0 || (u64)before >= (u64)length) continue;
        i32 step = reference.packed().base(place) - reference.packed().base(before);
        bool right =
            step > 0 || (step == 0 && (!reference.reach(before + 1, 1) ||
                                       (reference.reach(place + 1, 1) && ranks[before + 1] < ranks[place + 1])));
        if (!right) atomic_min(doubts + 1, (u64)rank);
    }
}

// An item is a pair of neighbours (item, item + 1): the smallest rank that stands out of order, or out of the reference,
// is reported.
KERNEL void check_order(i64 begin, i64 end, Reference reference, const suffix_t* suffixes OF(suffix_count),
                        u64* error OF(1), i64 suffix_count, i64 length) {
    FOR_EACH(rank, begin, end) {
        i64 place = (i64)suffixes[rank];
        if (place < 0 || place >= length || reference.reach(place, 1) == 0) {
            atomic_min(error, (u64)rank);
            continue;
        }
        if (rank + 1 == suffix_count) continue;
        i64 next = (i64)suffixes[rank + 1];
        if (next < 0 || next >= length) continue;
        if (next == place) atomic_min(error, (u64)rank);
        Suffix suffix = {reference.packed(), place, 64};
        i32 shared = common_prefix(reference, suffix, next);
        while (shared == suffix.length && reference.reach(place, shared) == shared) {
            suffix.length = (i32)minimum((i64)2 * suffix.length, length + 64 - maximum(place, next));
            shared = common_prefix(reference, suffix, next);
        }
        if (reference.reach(place, shared + 1) <= shared)
            continue;  // it met a barrier first, and a barrier is smallest
        bool ends = reference.reach(next + shared, 1) == 0;
        if (ends || reference.packed().base(place + shared) > reference.packed().base(next + shared))
            atomic_min(error, (u64)rank);
    }
}
