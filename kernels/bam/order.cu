// Records of BAM by their places: a key for each, and the records again in the order of the keys.
#include "bam/marking.cuh"
#include "common/portable.cuh"
#include "common/binary_search.cuh"

// Beside the marks of a record's fragment: it is not left out.
const u8 WRITTEN = 128;

// Contig, position and strand, as samtools sort compares them; what has no contig is behind all that have one.
HOST_DEVICE u64 coordinate_key(BamFields record, i64 contigs) {
    u64 contig = record.contig() < 0 ? contigs : record.contig();
    return contig << 32 | (u64)(u32)(record.position() + 1) << 1 | ((record.flag() & REVERSED) != 0);
}

// An item is an entry; is_record: whether it has a record. ends: the inclusive prefix sum of the lengths. What has none gets
// a key behind those of all records.
KERNEL void compute_keys(Items items, const u8* bytes OF(any), const i64* lengths OF(items), const i64* ends OF(items),
                        i64 contigs, u64* keys OF(items), u32* numbers OF(items), u8* is_record OF(items)) {
    FOR_EACH(entry, items) {
        i64 length = lengths[entry];
        keys[entry] = length ? coordinate_key({bytes + ends[entry] - length}, contigs) : (u64)(contigs + 1) << 32;
        numbers[entry] = (u32)entry;
        is_record[entry] = length > 0;
    }
}

// An item is a record of the new order: its length, and that of what stands behind it.
KERNEL void permute_lengths(Items items, const i64* lengths OF(records), const u32* order OF(items),
                          i64* new_lengths OF(items), i64 records, i64 tag_bytes) {
    FOR_EACH(item, items) new_lengths[item] = lengths[order[item]] + tag_bytes;
}

// An item is a record of the new order, which a group copies. ends: where the records end; new_ends: where the copies end,
// with what stands behind them: the numbers of their fragments, if they have a tag_bytes.
KERNEL void gather_records(WarpItems items, const u8* bytes OF(any), const i64* ends OF(records),
                           const i64* lengths OF(records), const u32* order OF(items), const i64* new_ends OF(items),
                           const i64* numbers OF(any), u8* sorted OF(any), i64 records, i64 tag_bytes) {
    FOR_EACH(item, items) {
        i64 record = order[item], length = lengths[record];
        u8* behind = sorted + new_ends[item] - tag_bytes;
        warp_copy(bytes + ends[record] - length, length, behind - length);
        if (tag_bytes && warp_lane() == 0) write_fragment_tag(behind, (u32)numbers[record]);
    }
}

// An item is a record: the number behind it counts from the first fragment of all batches on.
KERNEL void offset_fragment_ids(Items items, u8* bytes OF(any), const i64* ends OF(items), i64 first, i64 tag_bytes) {
    FOR_EACH(record, items) {
        u8* tag = bytes + ends[record] - tag_bytes;
        write_fragment_tag(tag, (u32)(first + fragment_id(tag)));
    }
}

// An item is a record of a sorted file in which fragments kept their numbers: from now on that stands behind it. fragments: of
// the file. is_invalid: it has no such number, or does not belong behind the record in front of it.
KERNEL void detach_fragment_tags(Items items, u8* bytes OF(any), const i64* ends OF(items), i64 contigs, i64 fragments,
                         i64 tag_bytes, u64* keys OF(items), u8* is_invalid OF(items)) {
    FOR_EACH(item, items) {
        i64 start = item ? ends[item - 1] : 0, before = item > 1 ? ends[item - 2] : 0, stored_length = ends[item] - start;
        const u8* tag = bytes + ends[item] - tag_bytes;
        keys[item] = coordinate_key({bytes + start}, contigs);
        is_invalid[item] = stored_length < FIXED_BYTES + tag_bytes || !is_fragment_tag(tag) || fragment_id(tag) >= (u64)fragments ||
                         (item && keys[item] < coordinate_key({bytes + before}, contigs));
        store_u32(bytes + start, (u32)(stored_length - tag_bytes - 4));
    }
}

// Runs of sorted records that are merged where they lie. An item is a record of one of them; ends: where each ends from the
// run's first byte on. Addresses and lengths are put where the run begins among all runs, whose records are numbered from
// `first` on; what is left out gets a key behind all others.
KERNEL void append_run(Items items, const u8* bytes OF(any), const u64* keys OF(items), const i64* ends OF(items),
                    Marking marking, u64* all_keys OF(items), u64* addresses OF(items), i64* lengths OF(items),
                    u8* marks OF(items), u32* numbers OF(items), i64 first, i64 contigs) {
    FOR_EACH(record, items) {
        i64 start = record ? ends[record - 1] : 0, stored_length = ends[record] - start;
        u8 mark = marking.mark_of(bytes + start, stored_length);
        i64 length = marking.output_length(stored_length, mark);
        all_keys[record] = length ? keys[record] : (u64)(contigs + 1) << 32;
        addresses[record] = (u64)(bytes + start);
        lengths[record] = length;
        marks[record] = (u8)(mark | (length ? WRITTEN : 0));
        numbers[record] = (u32)(first + record);
    }
}

// An item is a piece of all records in order: the records and the bytes in front of it. Pieces have about piece_bytes.
KERNEL void cut_pieces(Items items, const i64* ends OF(records), i64* firsts OF(items), i64* origins OF(items),
                       i64 records, i64 piece_bytes) {
    FOR_EACH(piece, items) {
        firsts[piece] = upper_bound(ends, records, piece * piece_bytes);
        origins[piece] = firsts[piece] ? ends[firsts[piece] - 1] : 0;
    }
}

// An item is a record of a piece, which a group copies and marks. addresses, lengths and marks: of all records; order: the
// numbers of the piece's; ends: where they end, which all count from `origin` on.
KERNEL void gather_piece(WarpItems items, const u64* addresses OF(records), const i64* lengths OF(records),
                         const u8* marks OF(records), const u32* order OF(items), const i64* ends OF(items),
                         Marking marking, u8* piece OF(any), i64 records, i64 origin) {
    FOR_EACH(item, items) {
        i64 record = order[item], length = lengths[record];
        u8 *copy = piece + (ends[item] - origin) - length, mark = marks[record];
        warp_copy((const u8*)addresses[record], marking.copied_length(length, mark), copy);
        warp_sync();
        if (warp_lane() == 0) marking.apply(copy, length, mark);
    }
}
