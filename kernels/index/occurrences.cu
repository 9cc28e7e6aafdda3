// Exact occurrences of patterns: the ranks of the suffixes that start with a pattern, by suffix array or suffix tree.
//
// An item is a pattern on a strand: all slots on first_strand (0 forward, 1 reverse), then on the other strand.
#include "index/occurrences.cuh"
#include "index/suffix_tree.cuh"

// Return the pattern of an item of the two kernels below, on the item's strand.
HOST_DEVICE Pattern pattern_of(const Patterns& patterns, const Occurrences& found, i64 item) {
    bool second = item >= found.pattern_count;
    return patterns.get(second ? item - found.pattern_count : item, second || found.first_strand);
}

// Write the first rank and the number of the suffixes that start with each pattern to `found`, by binary search. The
// loads of a bunch are prefetched stage by stage, so that they overlap.
KERNEL void find_by_array(Items items, Patterns patterns, Reference reference, SuffixArray index, Occurrences found) {
    FOR_EACH_BUNCH(first, size, items) {
        Ranks ranges[BUNCH];
        for (i32 i = 0; i < size; ++i) {
            Pattern pattern = pattern_of(patterns, found, first + i);
            if (pattern.length)
                PREFETCH(&index.prefix_table[prefix_code(QuerySuffix{pattern, 0, pattern.length}, index.table_bases)]);
        }
        for (i32 i = 0; i < size; ++i) {
            Pattern pattern = pattern_of(patterns, found, first + i);
            ranges[i] = Ranks{0, 0};
            if (pattern.length)
                ranges[i] =
                        prefix_range(index.prefix_table, QuerySuffix{pattern, 0, pattern.length}, index.table_bases);
            PREFETCH(&index.suffixes[(ranges[i].low + ranges[i].high) >> 1]);
        }
        for (i32 i = 0; i < size; ++i)
            if (ranges[i].low < ranges[i].high)
                PREFETCH(&reference.words[index.suffixes[(ranges[i].low + ranges[i].high) >> 1] >> 5]);
        for (i32 i = 0; i < size; ++i) {
            Pattern pattern = pattern_of(patterns, found, first + i);
            Ranks range = equal_range(reference, index.suffixes, QuerySuffix{pattern, 0, pattern.length}, ranges[i]);
            i64 count = range.high - range.low;
            found.ranks[first + i] = (suffix_t)(count ? range.low : 0);
            found.counts[first + i] = (suffix_t)count;
        }
    }
}

// As find_by_array, write first rank and number of suffixes of each pattern, by walking down the suffix tree.
KERNEL void find_by_tree(Items items, Patterns patterns, Reference reference, SuffixTree tree, Occurrences found) {
    FOR_EACH_BUNCH(first, size, items) {
        Walk walks[BUNCH];
        for (i32 i = 0; i < size; ++i) {
            Pattern pattern = pattern_of(patterns, found, first + i);
            if (pattern.length) PREFETCH(&tree.entries[leading_code(pattern.at(0), tree.entry_bases)]);
        }
        for (i32 i = 0; i < size; ++i) {
            walks[i].start(pattern_of(patterns, found, first + i), tree);
            if (walks[i].going) PREFETCH(&tree.edges[walks[i].next]);
        }
        for (bool going = true; going;) {
            going = false;
            for (i32 i = 0; i < size; ++i) {
                if (!walks[i].going) continue;
                walks[i].step(tree.edges);
                going |= walks[i].going;
                if (!walks[i].going) PREFETCH(&reference.words[walks[i].position >> 5]);
            }
        }
        for (i32 i = 0; i < size; ++i) {
            Ranks range = walks[i].found(tree, reference);
            found.ranks[first + i] = (suffix_t)range.low;
            found.counts[first + i] = (suffix_t)(range.high - range.low);
        }
    }
}

// totals[record] = the number of occurrences of a read on all strands.
KERNEL void count_occurrences(Items items, Occurrences occurrences, i64* totals OF(items)) {
    FOR_EACH(record, items) totals[record] = occurrences.total(record);
}

// Write contig, start in the contig, and strand (1 or -1) of each occurrence (item). ends: inclusive sums of the number
// of wanted occurrences of each read.
KERNEL void locate(Items items, Occurrences occurrences, Reference reference, SuffixArray index,
        const i64* ends OF(record_count), i32* contigs OF(items), i64* starts OF(items), i8* strands OF(items),
        i64 record_count) {
    i64 record = -1;
    FOR_EACH(item, items) {
        record = record_of_item(ends, record_count, item, record);
        Occurrence found = occurrences.get(record, item - (record ? ends[record - 1] : 0), index.suffixes);
        i64 contig = reference.contig_of(found.position);
        contigs[item] = (i32)contig;
        starts[item] = found.position - reference.contig_starts[contig];
        strands[item] = found.reversed ? -1 : 1;
    }
}
