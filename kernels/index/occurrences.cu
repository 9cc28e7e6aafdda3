// Where patterns occur: the ranks of the suffixes that begin with them, found by the suffix array or by the suffix tree.
//
// An item is a pattern on a strand: those of all slots on first_strand (0 as they were read, 1 reverse complements), then
// those of all slots on the other one. ranks and counts are empty where a pattern does not occur.
#include "index/occurrences.cuh"
#include "index/suffix_tree.cuh"

HOST_DEVICE Pattern pattern_of(const Patterns& patterns, i64 item, i64 pattern_count, i32 first_strand) {
    bool second = item >= pattern_count;
    return patterns.get(second ? item - pattern_count : item, second || first_strand);
}

// The loads of a bunch's patterns are asked for ahead, each where the one before it has arrived.
KERNEL void find_by_array(i64 begin, i64 end, PATTERN_ARGUMENTS, REFERENCE_ARGUMENTS, const suffix_t* suffixes,
                          const suffix_t* prefix_table, suffix_t* ranks, suffix_t* counts, i64 pattern_count,
                          i32 first_strand, i32 table_bases) {
    Reference reference = REFERENCE;
    Patterns patterns = PATTERNS;
    FOR_EACH_BUNCH(first, size, begin, end) {
        Ranks ranges[BUNCH];
        for (i32 i = 0; i < size; ++i) {
            Pattern pattern = pattern_of(patterns, first + i, pattern_count, first_strand);
            if (pattern.length) PREFETCH(&prefix_table[prefix_code(Suffix{pattern, 0, pattern.length}, table_bases)]);
        }
        for (i32 i = 0; i < size; ++i) {
            Pattern pattern = pattern_of(patterns, first + i, pattern_count, first_strand);
            ranges[i] = Ranks{0, 0};
            if (pattern.length) ranges[i] = prefix_range(prefix_table, Suffix{pattern, 0, pattern.length}, table_bases);
            PREFETCH(&suffixes[(ranges[i].low + ranges[i].high) >> 1]);
        }
        for (i32 i = 0; i < size; ++i)
            if (ranges[i].low < ranges[i].high)
                PREFETCH(&reference_words[suffixes[(ranges[i].low + ranges[i].high) >> 1] >> 5]);
        for (i32 i = 0; i < size; ++i) {
            Pattern pattern = pattern_of(patterns, first + i, pattern_count, first_strand);
            Ranks found = equal_range(reference, suffixes, Suffix{pattern, 0, pattern.length}, ranges[i]);
            i64 count = found.high - found.low;
            ranks[first + i] = (suffix_t)(count ? found.low : 0);
            counts[first + i] = (suffix_t)count;
        }
    }
}

KERNEL void find_by_tree(i64 begin, i64 end, PATTERN_ARGUMENTS, REFERENCE_ARGUMENTS, const Edge* edges,
                         const Entry* entries, suffix_t* ranks, suffix_t* counts, i64 pattern_count, i32 first_strand,
                         i32 entry_bases, i64 suffix_count) {
    Reference reference = REFERENCE;
    Patterns patterns = PATTERNS;
    FOR_EACH_BUNCH(first, size, begin, end) {
        Walk walks[BUNCH];
        for (i32 i = 0; i < size; ++i) {
            Pattern pattern = pattern_of(patterns, first + i, pattern_count, first_strand);
            if (pattern.length) PREFETCH(&entries[leading_code(pattern.at(0), entry_bases)]);
        }
        for (i32 i = 0; i < size; ++i) {
            walks[i].begin(pattern_of(patterns, first + i, pattern_count, first_strand), entries, entry_bases);
            if (walks[i].going) PREFETCH(&edges[walks[i].next]);
        }
        for (bool going = true; going;) {
            going = false;
            for (i32 i = 0; i < size; ++i) {
                if (!walks[i].going) continue;
                walks[i].step(edges);
                going |= walks[i].going;
                if (!walks[i].going) PREFETCH(&reference_words[walks[i].place >> 5]);
            }
        }
        for (i32 i = 0; i < size; ++i) {
            Ranks found = walks[i].found(edges, reference, suffix_count);
            ranks[first + i] = (suffix_t)found.low;
            counts[first + i] = (suffix_t)(found.high - found.low);
        }
    }
}

// An item is a record. totals: its occurrences on all strands.
KERNEL void total_occurrences(i64 begin, i64 end, OCCURRENCE_ARGUMENTS, i64* totals) {
    Occurrences occurrences = OCCURRENCES;
    FOR_EACH(record, begin, end) totals[record] = occurrences.total(record);
}

// An item is an occurrence; ends[record] counts those wanted up to and with a record's. Starts are places in the contig.
KERNEL void locate(i64 begin, i64 end, OCCURRENCE_ARGUMENTS, REFERENCE_ARGUMENTS, const suffix_t* suffixes,
                   const i64* ends, i32* contigs, i64* starts, i8* strands, i64 record_count) {
    Reference reference = REFERENCE;
    Occurrences occurrences = OCCURRENCES;
    i64 record = -1;
    FOR_EACH(item, begin, end) {
        record = item_record(ends, record_count, item, record);
        Occurrence found = occurrences.get(record, item - (record ? ends[record - 1] : 0), suffixes);
        i64 contig = reference.contig_of(found.place);
        contigs[item] = (i32)contig;
        starts[item] = found.place - contig_starts[contig];
        strands[item] = found.reversed ? -1 : 1;
    }
}
