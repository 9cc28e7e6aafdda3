// Where sorted records of BAM lie, as an index of the file wants it.
#include "bam/cigar.cuh"
#include "common/flags.cuh"

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
HOST_DEVICE i32 bin_of(i64 begin, i64 end, i32 least_shift, i32 levels) {
    --end;
    i32 shift = least_shift;
    i64 first = ((1ll << 3 * levels) - 1) / 7;
    for (i32 level = levels; level > 0; --level) {
        if (begin >> shift == end >> shift) return (i32)(first + (begin >> shift));
        shift += 3;
        first -= 1ll << 3 * (level - 1);
    }
    return 0;
}

// An item is a record; ends: where each ends, which all count from `origin` on. starts: where it begins, from the first
// one's begin on. contigs: -1 where it has none; first and last: its windows of 2^least_shift bases.
KERNEL void find_places(i64 begin, i64 end, const u8* bytes OF(some), const i64* ends OF(items), i64 origin,
                        i32* starts OF(items), i32* contigs OF(items), i32* bins OF(items),
                        i32* first_windows OF(items), i32* last_windows OF(items), i32* are_mapped OF(items),
                        i32 least_shift, i32 levels) {
    FOR_EACH(item, begin, end) {
        starts[item] = (i32)(item ? ends[item - 1] - origin : 0);
        BamFields record = {bytes + starts[item]};
        i64 place = maximum(record.position(), (i64)0), last = place + covered_bases(record) - 1;
        contigs[item] = (i32)record.contig();
        bins[item] = bin_of(place, last + 1, least_shift, levels);
        first_windows[item] = (i32)(place >> least_shift);
        last_windows[item] = (i32)(last >> least_shift);
        are_mapped[item] = !(record.flag() & UNMAPPED);
    }
}
