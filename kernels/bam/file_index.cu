// Where sorted records of BAM lie, as an index of the file wants it.
#include "bam/cigar.cuh"
#include "common/sam_flags.cuh"

// The bases of the reference that a record covers, one at least.
HOST_DEVICE i64 covered_bases(BamFields record) {
    i64 sum = 0, count = record.flag() & UNMAPPED ? 0 : record.operation_count();
    for (i64 i = 0; i < count; ++i) {
        u32 word = record.operation(i);
        sum += covers_reference(word & 15) ? word >> 4 : 0;
    }
    return maximum(sum, (i64)1);
}

// The smallest bin that holds [begin, end): bins of level n are eight to one of level n - 1, and `levels` of them lie below
// the one of all. SAM specification, sections 5.1.1 and 5.2.
HOST_DEVICE i32 bin_of(i64 begin, i64 end, i32 min_shift, i32 levels) {
    --end;
    i32 shift = min_shift;
    i64 first = ((1ll << 3 * levels) - 1) / 7;
    for (i32 level = levels; level > 0; --level) {
        if (begin >> shift == end >> shift) return (i32)(first + (begin >> shift));
        shift += 3;
        first -= 1ll << 3 * (level - 1);
    }
    return 0;
}

// What an index hears of: the first record of a contig, of a bin and of a window, one that reaches a further window than
// the one in front of it, and the last of all records. Those without a contig are a contig of their own, with nothing
// else.
enum Mark { CONTIG_START = 1, BIN_START = 2, WINDOW_START = 4, REACHES_FURTHER = 8, LAST = 16 };

// A marked record; start: where it begins, from the first one's begin on. mapped: those in front of it that are.
struct IndexEntry {
    i64 start, mapped, number;
    i32 contig, bin, first_window, last_window, mark, is_mapped;
};

// An item is a record; ends: where each ends, which all count from `origin` on. contigs: -1 where it has none; first and
// last: its windows of 2^min_shift bases.
KERNEL void compute_bins(Items items, const u8* bytes OF(any), const i64* ends OF(items), i64 origin,
                        i32* contigs OF(items), i32* bins OF(items), i32* first_windows OF(items),
                        i32* last_windows OF(items), i64* are_mapped OF(items), i32 min_shift, i32 levels) {
    FOR_EACH(item, items) {
        BamFields record = {bytes + (item ? ends[item - 1] - origin : 0)};
        i64 place = maximum(record.position(), (i64)0), last = place + covered_bases(record) - 1;
        contigs[item] = (i32)record.contig();
        bins[item] = bin_of(place, last + 1, min_shift, levels);
        first_windows[item] = (i32)(place >> min_shift);
        last_windows[item] = (i32)(last >> min_shift);
        are_mapped[item] = !(record.flag() & UNMAPPED);
    }
}

KERNEL void flag_entries(Items items, const i32* contigs OF(items), const i32* bins OF(items),
                        const i32* first_windows OF(items), const i32* last_windows OF(items), u8* marks OF(items),
                        i64 records) {
    FOR_EACH(item, items) {
        bool is_placed = contigs[item] >= 0, begins = !item || contigs[item] != contigs[item - 1];
        i32 mark = begins ? CONTIG_START : 0;
        if (is_placed && (begins || bins[item] != bins[item - 1])) mark |= BIN_START;
        if (is_placed && (begins || first_windows[item] != first_windows[item - 1])) mark |= WINDOW_START;
        bool reaches = first_windows[item] < last_windows[item];
        if (is_placed && reaches && (begins || last_windows[item] > last_windows[item - 1])) mark |= REACHES_FURTHER;
        marks[item] = (u8)(item + 1 < records ? mark : mark | LAST);
    }
}

// An item is one of the marked records. mapped_ends: the inclusive prefix sum of are_mapped.
KERNEL void gather_entries(Items items, const i32* numbers OF(items), const i64* ends OF(records), i64 origin,
                        const i32* contigs OF(records), const i32* bins OF(records),
                        const i32* first_windows OF(records), const i32* last_windows OF(records),
                        const u8* marks OF(records), const i64* mapped_ends OF(records),
                        IndexEntry* places OF(items)) {
    FOR_EACH(item, items) {
        i32 i = numbers[item];
        i64 mapped = i ? mapped_ends[i - 1] : 0;
        places[item] = {
            i ? ends[i - 1] - origin : 0,  mapped, i, contigs[i], bins[i], first_windows[i], last_windows[i], marks[i],
            (i32)(mapped_ends[i] - mapped)};
    }
}
