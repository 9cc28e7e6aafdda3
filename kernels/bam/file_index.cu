// Bins and windows of sorted BAM records, for the index of the file.
#include "bam/cigar_and_tags.cuh"
#include "common/sam_flags.cuh"

// Return the number of reference bases that a record's CIGAR covers, at least 1, and 1 for an unmapped record.
HOST_DEVICE i64 covered_bases(BamFields record) {
    i64 sum = 0, count = record.flag() & UNMAPPED ? 0 : record.operation_count();
    for (i64 i = 0; i < count; ++i) {
        u32 word = record.operation(i);
        sum += covers_reference(word & 15) ? word >> 4 : 0;
    }
    return maximum(sum, (i64)1);
}

// Return the smallest bin of a BAI or CSI index that contains [start, end). The smallest bins have 2^min_shift bases;
// `levels` levels are below the root; a bin has eight bins of the next (SAM specification, section 5.2).
HOST_DEVICE i32 bin_of(i64 start, i64 end, i32 min_shift, i32 levels) {
    --end;
    i32 shift = min_shift;
    i64 first = ((1ll << 3 * levels) - 1) / 7;
    for (i32 level = levels; level > 0; --level) {
        if (start >> shift == end >> shift) return (i32)(first + (start >> shift));
        shift += 3;
        first -= 1ll << 3 * (level - 1);
    }
    return 0;
}

// Records that the index needs: the first of a contig, of a bin and of a window, one that reaches a further window than
// the record before, and the last of all. Records without a contig count as one contig, without bins and windows.
enum Mark { CONTIG_START = 1, BIN_START = 2, WINDOW_START = 4, REACHES_FURTHER = 8, LAST = 16 };

// A marked record; start: offset in bytes from the first record. mapped: number of mapped records before it.
struct IndexEntry {
    i64 start, mapped, index;
    i32 contig, bin, first_window, last_window, mark, is_mapped;
};

// Compute contig (-1: none), bin, first and last window of 2^min_shift bases, and are_mapped (1 or 0) of each record.
// ends: where each record ends in `bytes`, plus `origin`.
KERNEL void compute_bins(Items items, const u8* bytes OF(any), const i64* ends OF(items), i64 origin,
        i32* contigs OF(items), i32* bins OF(items), i32* first_windows OF(items), i32* last_windows OF(items),
        i64* are_mapped OF(items), i32 min_shift, i32 levels) {
    FOR_EACH(item, items) {
        BamFields record = {bytes + (item ? ends[item - 1] - origin : 0)};
        i64 start = maximum(record.position(), (i64)0), last = start + covered_bases(record) - 1;
        contigs[item] = (i32)record.contig();
        bins[item] = bin_of(start, last + 1, min_shift, levels);
        first_windows[item] = (i32)(start >> min_shift);
        last_windows[item] = (i32)(last >> min_shift);
        are_mapped[item] = !(record.flag() & UNMAPPED);
    }
}

// Write marks: bits of enum Mark that say why the index needs a record, or 0. An item is one of `records` records.
KERNEL void flag_entries(Items items, const i32* contigs OF(items), const i32* bins OF(items),
        const i32* first_windows OF(items), const i32* last_windows OF(items), u8* marks OF(items), i64 records) {
    FOR_EACH(item, items) {
        bool has_contig = contigs[item] >= 0, is_first = !item || contigs[item] != contigs[item - 1];
        i32 mark = is_first ? CONTIG_START : 0;
        if (has_contig && (is_first || bins[item] != bins[item - 1])) mark |= BIN_START;
        if (has_contig && (is_first || first_windows[item] != first_windows[item - 1])) mark |= WINDOW_START;
        bool reaches = first_windows[item] < last_windows[item];
        if (has_contig && reaches && (is_first || last_windows[item] > last_windows[item - 1])) mark |= REACHES_FURTHER;
        marks[item] = (u8)(item + 1 < records ? mark : mark | LAST);
    }
}

// Write an IndexEntry for each marked record. indices: the marked records; ends: where each record ends, plus `origin`;
// mapped_ends: inclusive scan of are_mapped.
KERNEL void gather_entries(Items items, const i32* indices OF(items), const i64* ends OF(records), i64 origin,
        const i32* contigs OF(records), const i32* bins OF(records), const i32* first_windows OF(records),
        const i32* last_windows OF(records), const u8* marks OF(records), const i64* mapped_ends OF(records),
        IndexEntry* entries OF(items)) {
    FOR_EACH(item, items) {
        i32 i = indices[item];
        i64 mapped = i ? mapped_ends[i - 1] : 0;
        entries[item] = {i ? ends[i - 1] - origin : 0, mapped, i, contigs[i], bins[i], first_windows[i],
                last_windows[i], marks[i], (i32)(mapped_ends[i] - mapped)};
    }
}
