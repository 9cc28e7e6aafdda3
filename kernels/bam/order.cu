// Records of BAM by their places: a key for each, and the records again in the order of the keys.
#include "common/bam_fields.cuh"
#include "common/flags.cuh"
#include "common/copying.cuh"
#include "common/item_record.cuh"

// Contig, position and strand, as samtools sort compares them; what has no contig is behind all that have one.
HOST_DEVICE u64 coordinate_key(BamFields record, i64 contigs) {
    u64 contig = record.contig() < 0 ? contigs : record.contig();
    return contig << 32 | (u64)(u32)(record.position() + 1) << 1 | ((record.flag() & REVERSED) != 0);
}

// An item is an entry; is_record: whether it has a record. ends: the inclusive prefix sum of the lengths. What has none gets
// a key behind those of all records.
KERNEL void key_records(i64 begin, i64 end, const u8* bytes OF(some), const i64* lengths OF(items),
                        const i64* ends OF(items), i64 contigs, u64* keys OF(items), u32* numbers OF(items),
                        u8* is_record OF(items)) {
    FOR_EACH(entry, begin, end) {
        i64 length = lengths[entry];
        keys[entry] = length ? coordinate_key({bytes + ends[entry] - length}, contigs) : (u64)(contigs + 1) << 32;
        numbers[entry] = (u32)entry;
        is_record[entry] = length > 0;
    }
}

// An item is a record of the new order: its length.
KERNEL void order_lengths(i64 begin, i64 end, const i64* lengths OF(records), const u32* order OF(items),
                          i64* new_lengths OF(items), i64 records) {
    FOR_EACH(item, begin, end) new_lengths[item] = lengths[order[item]];
}

// An item is a record of the new order, which a group copies. starts: where the records lie; ends: where the copies end.
KERNEL void gather_records(i64 begin, i64 end, const u8* bytes OF(some), const i64* starts OF(records),
                           const i64* lengths OF(records), const u32* order OF(items), const i64* ends OF(items),
                           u8* sorted OF(some), i64 records) {
    FOR_EACH_GROUP(item, begin, end) {
        i64 record = order[item], length = lengths[record];
        copy_by_group(bytes + starts[record], length, sorted + ends[item] - length);
    }
}

// Runs of sorted records that are merged where they lie. An item is a record of one of them; ends: where each ends from the
// run's first byte on. Addresses and lengths are put where the run begins among all runs, whose records are numbered from
// `first` on.
KERNEL void lay_run(i64 begin, i64 end, const u8* bytes OF(some), const u64* keys OF(items), const i64* ends OF(items),
                    u64* all_keys OF(items), u64* addresses OF(items), i64* lengths OF(items), u32* numbers OF(items),
                    i64 first) {
    FOR_EACH(record, begin, end) {
        i64 start = record ? ends[record - 1] : 0;
        all_keys[record] = keys[record];
        addresses[record] = (u64)(bytes + start);
        lengths[record] = ends[record] - start;
        numbers[record] = (u32)(first + record);
    }
}

// An item is a piece of all records in order: the records and the bytes in front of it. Pieces have about piece_bytes.
KERNEL void cut_pieces(i64 begin, i64 end, const i64* ends OF(records), i64* firsts OF(items), i64* origins OF(items),
                       i64 records, i64 piece_bytes) {
    FOR_EACH(piece, begin, end) {
        firsts[piece] = first_above(ends, records, piece * piece_bytes);
        origins[piece] = firsts[piece] ? ends[firsts[piece] - 1] : 0;
    }
}

// An item is a record of a piece, which a group copies. addresses and lengths: of all records; order: the numbers of the
// piece's; ends: where they end, which all count from `origin` on.
KERNEL void gather_piece(i64 begin, i64 end, const u64* addresses OF(records), const i64* lengths OF(records),
                         const u32* order OF(items), const i64* ends OF(items), u8* piece OF(some), i64 records,
                         i64 origin) {
    FOR_EACH_GROUP(item, begin, end) {
        i64 record = order[item], length = lengths[record];
        copy_by_group((const u8*)addresses[record], length, piece + (ends[item] - origin) - length);
    }
}
