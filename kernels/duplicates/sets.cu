// Fragments with the same ends form a set: the best fragment of each set stays, the others are duplicates.
#include "common/binary_search.cuh"
#include "duplicates/fragment.cuh"

// What starts at a position of the order: a set of pairs, a pair without duplicates, or a set of single mapped reads.
enum SetKind { PAIR_SET = 1, LONE_PAIR = 2, READ_SET = 4 };

// Write high and low of each fragment as the sort columns that make the fragments of a set adjacent.
KERNEL void key_fragments(Items items, const Fragment* rows OF(items), u64* highs OF(items), u64* lows OF(items)) {
    FOR_EACH(fragment, items) {
        highs[fragment] = rows[fragment].high;
        lows[fragment] = rows[fragment].low;
    }
}

// Write to `kinds` the SetKind that starts at each position of the order, else 0. An item is a position.
KERNEL void mark_sets(Items items, Fragments fragments, const u32* order OF(items), u8* kinds OF(items), i64 size) {
    FOR_EACH(at, items) {
        const Fragment& row = fragments.rows[order[at]];
        bool is_first = !at || !fragments.same(order[at - 1], order[at]);
        bool is_last = at + 1 == size || !fragments.same(order[at], order[at + 1]);
        u8 mark = 0;
        if (row.high != UNMAPPED_KEY && is_first) {
            if (row.is_pair()) mark = is_last ? LONE_PAIR : PAIR_SET;
            else if (row.low == SINGLE) mark = READ_SET;
        }
        kinds[at] = mark;
    }
}

struct EndKey {
    u64 high, barcode;
    HOST_DEVICE bool is_less(const EndKey& other) const {
        return high != other.high ? high < other.high : barcode < other.barcode;
    }
};

// Mark in is_paired each set of fragments with one mapped read that shares its end and barcode with a fragment of two
// mapped mates or with a missing mate. An item is a fragment. heads: where these `count` sets start in the order.
KERNEL void find_paired_ends(Items items, Fragments fragments, const u32* order OF(items), const i32* heads OF(count),
        u8* is_paired OF(count), i64 count) {
    FOR_EACH(fragment, items) {
        const Fragment& row = fragments.rows[fragment];
        if (row.high == UNMAPPED_KEY || row.low == SINGLE) continue;
        u64 barcode = fragments.barcode(fragment), highs[2] = {row.high, row.other_high()};
        for (i64 i = 0; i < 1 + row.is_pair(); ++i) {
            EndKey own = {highs[i], barcode};
            auto key_of = [&](i64 set) {
                u32 head = order[heads[set]];
                return EndKey{fragments.rows[head].high, fragments.barcode(head)};
            };
            i64 found = partition_point(0, count, [&](i64 set) { return key_of(set).is_less(own); });
            if (found < count && !own.is_less(key_of(found))) is_paired[found] = 1;
        }
    }
}

// Mark as duplicates all fragments of a set (item) but the best, or all if all_duplicates. heads: where sets start in
// the order. sizes: fragments; located: those with coordinates, without strand combinations of over max_pairs pairs.
KERNEL void choose_best(Items items, Fragments fragments, const u32* order OF(size), const i32* heads OF(items),
        const u8* all_duplicates OF(items), u8* marks OF(size), i64* sizes OF(items), i64* located OF(items),
        u64* counters OF(any), i64 size, i64 max_pairs) {
    FOR_EACH(set, items) {
        i64 first = heads[set], last = first, best = first, by_strands[4] = {0, 0, 0, 0},
            with_coordinates[4] = {0, 0, 0, 0};
        for (; last < size && (last == first || fragments.same(order[first], order[last])); ++last) {
            const Fragment& row = fragments.rows[order[last]];
            if (row.is_better(fragments.rows[order[best]])) best = last;
            ++by_strands[row.strands & 3];
            with_coordinates[row.strands & 3] += row.has_coordinates();
        }
        for (i64 at = first; at < last; ++at)
            if (at != best || all_duplicates[set]) marks[order[at]] |= DUPLICATE;
        i64 count = last - first, located_pairs = 0;
        for (i64 i = 0; i < 4; ++i) located_pairs += by_strands[i] > max_pairs ? 0 : with_coordinates[i];
        sizes[set] = count;
        located[set] = located_pairs;
        const Fragment& row = fragments.rows[order[first]];
        u64* counted = counters + row.library() * COUNTERS;
        i64 marked = count - !all_duplicates[set];
        if (marked) atomic_add(counted + (row.is_pair() ? PAIR_DUPLICATES : UNPAIRED_DUPLICATES), (u64)marked);
    }
}
