// The records of a batch, grouped by fragment -> Fragments.
#include "bam/cigar_and_tags.cuh"
#include "duplicates/fragment.cuh"

// A read's score is the sum of qualities from MIN_QUALITY on, less FAILED_SCORE (htsjdk's DuplicateScoringStrategy).
const i64 MIN_QUALITY = 15, MAX_READ_SCORE = 16383, FAILED_SCORE = 16384;
const i64 COUNTED_BLOCK = 1024;
// The read groups of the header: hashes of their names (sorted), and the index and the library of each.
struct ReadGroups {
    const u64* names OF(groups);      // hash of each read group's name
    const u16* numbers OF(groups);    // index of each read group
    const u16* libraries OF(groups);  // index of each read group's library
    i64 groups;
    u16 unknown_library;  // library of records without a known read group
    i32 barcode_tag;      // the two letters of the barcode's tag, 0 for none
    // Return the slot of a name; `groups` if the name is not in the header.
    HOST_DEVICE i64 find(u64 name) const { return find_index(names, groups, name); }
};

struct Cluster {
    i32 x, y;
    i16 tile;
};

// Parse digits up to the first other character, after an optional minus; return false if there is no digit.
HOST_DEVICE bool parse_number(const u8* text, const u8* end, i32& number) {
    bool is_negative = text < end && *text == '-';
    const u8* digits = text + is_negative;
    u32 value = 0;
    const u8* at = digits;
    for (; at < end && *at >= '0' && *at <= '9'; ++at) value = 10 * value + (*at - '0');
    number = (i32)(is_negative ? 0 - value : value);
    return at > digits;
}

// Return the cluster of an Illumina read name [name, end): tile, x and y are fields 3 to 5 of 5, or 5 to 7 of 7 or 8,
// between colons. The tile is NO_TILE if the name has another form.
HOST_DEVICE Cluster cluster_of(const u8* name, const u8* end) {
    i64 fields = 1;
    for (const u8* at = name; at < end; ++at) fields += *at == ':';
    Cluster none = {-1, -1, (i16)NO_TILE};
    if (fields != 5 && fields != 7 && fields != 8) return none;
    for (i64 skipped = fields == 5 ? 2 : 4; skipped; ++name) skipped -= *name == ':';
    i32 found[3];
    for (i64 i = 0; i < 3; ++i) {
        const u8* border = name;
        while (border < end && *border != ':') ++border;
        if (!parse_number(name, border, found[i])) return none;
        name = border + 1;
    }
    return {found[1], found[2], (i16)found[0]};
}

// The outer end of a mapped read: position, with the strand in the lowest bit, and score.
struct End {
    u64 position;
    i32 score;
    bool is_reversed, is_first;
};

// Return the unclipped 5' end of a mapped read. contig_offsets: start of each contig among concatenated contigs.
HOST_DEVICE End outer_end(BamFields record, const u64* contig_offsets) {
    i64 clipped_first = 0, clipped_last = 0, bases = 0, flag = record.flag();
    bool is_after = false;
    for (i64 i = 0; i < record.operation_count(); ++i) {
        i64 count = record.operation(i) >> 4, kind = record.operation(i) & 15;
        if (kind == SOFT_CLIP || kind == HARD_CLIP) {
            if (is_after) clipped_last += count;
            else clipped_first += count;
        } else {
            is_after = true;
            if (covers_reference(kind)) bases += count;
        }
    }
    bool is_reversed = flag & REVERSED;
    i64 outer = record.position() + (is_reversed ? bases - 1 + clipped_last : -clipped_first);
    // Invalid records may extend beyond all contigs.
    i64 position = clamp((i64)contig_offsets[record.contig()] + maximum(outer, -MARGIN), (i64)0, MAX_POSITION);
    const u8* quality = record.qualities();
    i64 letters = record.letters(), score = 0;
    if (record.has_qualities())
        for (i64 i = 0; i < letters; ++i) score += quality[i] >= MIN_QUALITY ? quality[i] : 0;
    score = minimum(score, MAX_READ_SCORE) - (flag & QC_FAILED ? FAILED_SCORE : 0);
    return {(u64)position << 1 | is_reversed, (i32)score, is_reversed, (flag & FIRST_MATE) != 0};
}

// Mark in is_start the records whose name differs from the name of the record before: they start a fragment. An item is
// a record. starts: where each record starts, then the end of the last record.
KERNEL void mark_fragment_starts(
        Items items, const u8* bytes OF(any), const i64* starts OF(items + 1), u8* is_start OF(items)) {
    FOR_EACH(record, items) {
        is_start[record] = 1;
        if (!record) continue;
        BamFields own = {bytes + starts[record]}, before = {bytes + starts[record - 1]};
        i64 length = own.name_length(), same = 0;
        if (length != before.name_length()) continue;
        while (same < length && own.bytes[FIXED_BYTES + same] == before.bytes[FIXED_BYTES + same]) ++same;
        is_start[record] = same < length;
    }
}

// Add reads of pairs and other mapped reads, and missing mates (`lost`), to the counters of a library.
HOST_DEVICE void add_to_library(u64* counters, i64 library, i64 paired, i64 unpaired, i64 lost) {
    if (paired) atomic_add(counters + library * COUNTERS + PAIRED_READS, (u64)paired);
    if (unpaired) atomic_add(counters + library * COUNTERS + UNPAIRED_READS, (u64)unpaired);
    if (lost) atomic_add(counters + library * COUNTERS + MISSING_MATES, (u64)lost);
}

// Write the Fragment and the barcode hash of each fragment (item) of `reads_per_fragment` reads, and add its other
// records to `counters`, COUNTERS per library. offsets: first entry of each read; lengths, ends: entries' records,
// length 0 for no record; numbers: becomes the fragment of each entry.
KERNEL void describe_fragments(Items items, const u8* bytes OF(any), const i64* lengths OF(entries),
        const i64* ends OF(entries), const i64* offsets OF(items* reads_per_fragment + 1),
        const u64* contig_offsets OF(any), ReadGroups read_groups, Fragment* rows OF(items), u64* barcodes OF(items),
        u64* counters OF(any), i64* numbers OF(entries), i64 entries, i64 reads_per_fragment) {
    FOR_EACH(fragment, items) {
        End found[2];
        Fragment row = {UNMAPPED_KEY, SINGLE, -1, -1, 0, (i16)NO_TILE, 0, 0};
        i64 mapped = 0, library = read_groups.unknown_library;
        bool has_mate = false;
        u64 barcode = 0;
        for (i64 entry = offsets[fragment * reads_per_fragment]; entry < offsets[(fragment + 1) * reads_per_fragment];
                ++entry) {
            numbers[entry] = fragment;
            i64 length = lengths[entry];
            if (!length) continue;
            BamFields record = {bytes + ends[entry] - length};
            i64 flag = record.flag();
            const u8 *tags = record.tags(), *end = record.bytes + length;
            i64 group = read_groups.find(hash_tag_text(tags, end, 'R' | 'G' << 8));
            bool is_known = group < read_groups.groups;
            library = is_known ? read_groups.libraries[group] : read_groups.unknown_library;
            u64* counted = counters + library * COUNTERS;
            if (flag & UNMAPPED || record.contig() < 0) {
                atomic_add(counted + UNMAPPED_READS, 1);
            } else if (flag & (SECONDARY | SUPPLEMENTARY)) {
                atomic_add(counted + OTHER_RECORDS, 1);
            } else {
                has_mate = (flag & PAIRED) && !(flag & MATE_UNMAPPED);
                if (mapped == 2) continue;
                if (!mapped) {
                    const u8* name = record.bytes + FIXED_BYTES;
                    Cluster cluster = cluster_of(name, name + record.name_length() - 1);
                    row.x = cluster.x;
                    row.y = cluster.y;
                    row.tile = cluster.tile;
                    row.group = is_known ? read_groups.numbers[group] : (u16)read_groups.groups;
                    row.high = (u64)library << (POSITION_BITS + 1);
                    if (read_groups.barcode_tag) barcode = hash_tag_text(tags, end, read_groups.barcode_tag);
                }
                found[mapped++] = outer_end(record, contig_offsets);
            }
        }
        if (mapped == 2 && has_mate) {
            bool is_swapped = found[1].position < found[0].position;
            row.high |= found[is_swapped].position;
            row.low = found[!is_swapped].position;
            row.score = (i16)(found[0].score + found[1].score);
            const End &first = found[!found[0].is_first], &second = found[found[0].is_first];
            row.strands = (u16)(first.is_reversed * 2 + second.is_reversed);
        } else if (mapped) {
            row.high |= found[0].position;
            row.low = has_mate ? MATE_MISSING : SINGLE;
            row.score = (i16)found[0].score;
        }
        rows[fragment] = row;
        barcodes[fragment] = barcode;
    }
}

// Count the mapped reads of COUNTED_BLOCK fragments (an item) by library, a warp each. counters: COUNTERS per library.
KERNEL void count_reads(WarpItems items, const Fragment* rows OF(size), u64* counters OF(any), i64 size) {
    FOR_EACH(block, items) {
        i64 last = minimum((block + 1) * COUNTED_BLOCK, size), library = 0;
        i64 paired = 0, unpaired = 0, lost = 0;
        for (i64 i = block * COUNTED_BLOCK + warp_lane(); i < last; i += WARP_WIDTH) {
            const Fragment& row = rows[i];
            if (row.high == UNMAPPED_KEY) continue;
            if (row.library() != library) {
                add_to_library(counters, library, paired, unpaired, lost);
                library = row.library();
                paired = unpaired = lost = 0;
            }
            lost += row.low == MATE_MISSING;
            paired += row.is_pair() ? 2 : row.low == MATE_MISSING;
            unpaired += row.low == SINGLE;
        }
        add_to_library(counters, library, paired, unpaired, lost);
    }
}

// Copy the fragments of a batch to `all`, which starts at the batch's first fragment.
KERNEL void copy_fragments(Items items, const Fragment* rows OF(items), Fragment* all OF(items)) {
    FOR_EACH(fragment, items) all[fragment] = rows[fragment];
}
KERNEL void copy_barcodes(Items items, const u64* barcodes OF(items), u64* all OF(items)) {  // as copy_fragments
    FOR_EACH(fragment, items) all[fragment] = barcodes[fragment];
}
