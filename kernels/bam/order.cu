// Sort BAM records by coordinate: keys, copies in sorted order, and pieces of several sorted runs.
#include "bam/marking.cuh"
#include "common/portable.cuh"
#include "common/binary_search.cuh"

const u8 WRITTEN = 128;  // set, in addition to the marks of the fragment, for a record that is not dropped
// Return the key of samtools sort: contig (`contigs` without one, so last) << 32 | (position + 1) << 1 | reversed.
HOST_DEVICE u64 coordinate_key(BamFields record, i64 contigs) {
    u64 contig = record.contig() < 0 ? contigs : record.contig();
    return contig << 32 | (u64)(u32)(record.position() + 1) << 1 | ((record.flag() & REVERSED) != 0);
}

// Write the coordinate key, index and is_record of each entry. ends: inclusive scan of the record lengths. An entry of
// length 0 has no record and comes last.
KERNEL void compute_keys(Items items, const u8* bytes OF(any), const i64* lengths OF(items), const i64* ends OF(items),
        i64 contigs, u64* keys OF(items), u32* indices OF(items), u8* is_record OF(items)) {
    FOR_EACH(entry, items) {
        i64 length = lengths[entry];
        keys[entry] = length ? coordinate_key({bytes + ends[entry] - length}, contigs) : (u64)(contigs + 1) << 32;
        indices[entry] = (u32)entry;
        is_record[entry] = length > 0;
    }
}

// Compute the lengths of the records in sorted order, each plus tag_bytes for the fragment tag that will follow it.
KERNEL void permute_lengths(Items items, const i64* lengths OF(records), const u32* order OF(items),
        i64* new_lengths OF(items), i64 records, i64 tag_bytes) {
    FOR_EACH(item, items) new_lengths[item] = lengths[order[item]] + tag_bytes;
}

// Copy the records to `sorted` in sorted order, one warp a record, each followed by a fragment tag with
// fragments[record] if tag_bytes > 0. ends: where the records end; new_ends: where the copies end, with their tags.
KERNEL void gather_records(WarpItems items, const u8* bytes OF(any), const i64* ends OF(records),
        const i64* lengths OF(records), const u32* order OF(items), const i64* new_ends OF(items),
        const i64* fragments OF(any), u8* sorted OF(any), i64 records, i64 tag_bytes) {
    FOR_EACH(item, items) {
        i64 record = order[item], length = lengths[record];
        u8* copy_end = sorted + new_ends[item] - tag_bytes;
        warp_copy(bytes + ends[record] - length, length, copy_end - length);
        if (tag_bytes && warp_lane() == 0) write_fragment_tag(copy_end, (u32)fragments[record]);
    }
}

// Add `first` to the fragment ID in the tag after each record. ends: where records end, with their tags.
KERNEL void offset_fragment_ids(Items items, u8* bytes OF(any), const i64* ends OF(items), i64 first, i64 tag_bytes) {
    FOR_EACH(record, items) {
        u8* tag = bytes + ends[record] - tag_bytes;
        write_fragment_tag(tag, (u32)(first + fragment_id(tag)));
    }
}

// Detach the fragment tags from records of a sorted file: write their coordinate keys, and exclude the tag from the
// size field. is_invalid: 1 if the record has no tag with an ID below `fragments`, or is out of order.
KERNEL void detach_fragment_tags(Items items, u8* bytes OF(any), const i64* ends OF(items), i64 contigs, i64 fragments,
        i64 tag_bytes, u64* keys OF(items), u8* is_invalid OF(items)) {
    FOR_EACH(item, items) {
        i64 start = item ? ends[item - 1] : 0, before = item > 1 ? ends[item - 2] : 0,
            stored_length = ends[item] - start;
        const u8* tag = bytes + ends[item] - tag_bytes;
        keys[item] = coordinate_key({bytes + start}, contigs);
        is_invalid[item] = stored_length < FIXED_BYTES + tag_bytes || !is_fragment_tag(tag) ||
                fragment_id(tag) >= (u64)fragments || (item && keys[item] < coordinate_key({bytes + before}, contigs));
        store_u32(bytes + start, (u32)(stored_length - tag_bytes - 4));
    }
}

// Describe the records of one sorted run among all runs, without moving them: key, address, output length (0 if
// dropped), marks and index, from `first` on. ends: within the run. The key of a dropped record is after all others.
KERNEL void append_run(Items items, const u8* bytes OF(any), const u64* keys OF(items), const i64* ends OF(items),
        Marking marking, u64* all_keys OF(items), u64* addresses OF(items), i64* lengths OF(items), u8* marks OF(items),
        u32* indices OF(items), i64 first, i64 contigs) {
    FOR_EACH(record, items) {
        i64 start = record ? ends[record - 1] : 0, stored_length = ends[record] - start;
        u8 mark = marking.mark_of(bytes + start, stored_length);
        i64 length = marking.output_length(stored_length, mark);
        all_keys[record] = length ? keys[record] : (u64)(contigs + 1) << 32;
        addresses[record] = (u64)(bytes + start);
        lengths[record] = length;
        marks[record] = (u8)(mark | (length ? WRITTEN : 0));
        indices[record] = (u32)(first + record);
    }
}

// Cut the sorted records into pieces of about piece_bytes: firsts and origins become the first record of each piece and
// its offset in bytes. ends: where each record ends.
KERNEL void cut_pieces(Items items, const i64* ends OF(records), i64* firsts OF(items), i64* origins OF(items),
        i64 records, i64 piece_bytes) {
    FOR_EACH(piece, items) {
        firsts[piece] = upper_bound(ends, records, piece * piece_bytes);
        origins[piece] = firsts[piece] ? ends[firsts[piece] - 1] : 0;
    }
}

// Copy the records of a piece to `piece` and mark the copies, one warp a record. addresses, lengths, marks: as
// append_run writes them; order: indices of the piece's records; ends: where their copies end, plus `origin`.
KERNEL void gather_piece(WarpItems items, const u64* addresses OF(records), const i64* lengths OF(records),
        const u8* marks OF(records), const u32* order OF(items), const i64* ends OF(items), Marking marking,
        u8* piece OF(any), i64 records, i64 origin) {
    FOR_EACH(item, items) {
        i64 record = order[item], length = lengths[record];
        u8 *copy = piece + (ends[item] - origin) - length, mark = marks[record];
        warp_copy((const u8*)addresses[record], marking.copied_length(length, mark), copy);
        warp_sync();
        if (warp_lane() == 0) marking.apply(copy, length, mark);
    }
}
