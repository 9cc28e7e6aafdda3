// Sorted BAM records -> depth of coverage of each base of the reference.
//
// An aligned block of a record gives two events: +1 at its first base and -1 after its last base. If the mate covers
// the same bases and precedes the record, the overlap is subtracted, so that the pair counts once. Events are sorted by
// position and swept: the prefix sum at an event is the depth up to the next event.
#include "bam/cigar_and_tags.cuh"
#include "common/sam_flags.cuh"
#include "common/binary_search.cuh"

// Records that do not count, as in samtools depth and mosdepth.
const i64 EXCLUDED_FLAGS = UNMAPPED | SECONDARY | QC_FAILED | DUPLICATE_RECORD;
// Bits of a position, below the bits of the sample: the bases of all contigs, and one after each.
const i64 POSITION_BITS = 40;
const i64 END_OF_POSITIONS = 0xFFFFFFFFFF;  // a position after all others
const i64 DEPTHS = 1024;                    // depths in the histogram; the last stands for all greater depths
// Counters of a contig: the sum of depths, and the bases with a depth of at least 1, 10, 20 and 30.
enum Covered { SUM, BY_ONE, BY_TEN, BY_TWENTY, BY_THIRTY, COVERED };

const i64 SECTION = 4096;  // events swept by a thread block
// contigs: start of each contig, and of one after the last. names: hashes of read group names; samples: by group.
struct Layout {
    const i64* contigs OF(contig_count + 1);
    const u64* names OF(groups);
    const u16* samples OF(groups + 1);
    i64 contig_count, groups;
};

// Counts events; Writer stores them.
struct Counter {
    i64 events;
    HOST_DEVICE void put(u64, i64) { ++events; }
};
struct Writer {
    u64 *positions, *changes;
    HOST_DEVICE void put(u64 position, i64 change) {
        *positions++ = position;
        *changes++ = (u64)change;
    }
};

// Emit the two events that add `change` to the depth of [first, end). events: a Counter or a Writer.
template <class Events> HOST_DEVICE void put_interval(Events& events, u64 first, u64 end, i64 change) {
    events.put(first, change);
    events.put(end, -change);
}

// Emit events that subtract 1 from the part of [first, end) that the mate covers. mate_cigar: text of its tag MC;
// contig: added to positions: sample << POSITION_BITS | start of the contig.
template <class Events> HOST_DEVICE void subtract_mate(
        Events& events, const u8* mate_cigar, i64 mate_position, i64 first, i64 end, u64 contig) {
    while (*mate_cigar && mate_position < end) {
        i64 count = 0;
        for (; *mate_cigar >= '0' && *mate_cigar <= '9'; ++mate_cigar)
            count = minimum(10 * count + (*mate_cigar - '0'), END_OF_POSITIONS);
        u8 kind = *mate_cigar;
        if (!kind) return;
        ++mate_cigar;
        if (kind == 'M' || kind == '=' || kind == 'X') {
            i64 low = maximum(mate_position, first), high = minimum(mate_position + count, end);
            if (low < high) put_interval(events, contig + (u64)low, contig + (u64)high, -1);
            mate_position += count;
        } else if (kind == 'D' || kind == 'N') {
            mate_position += count;
        }
    }
}

// Emit the events of a record, none for EXCLUDED_FLAGS. missing_mc: null, or a counter per sample of later mates
// without MC, whose overlap is unknown.
template <class Events> HOST_DEVICE void put_events(Events& events, RecordSpan span, Layout layout, u64* missing_mc) {
    BamFields record = span.record;
    i64 flag = record.flag();
    if (flag & EXCLUDED_FLAGS || record.contig() < 0) return;
    u64 name = hash_tag_text(record.tags(), span.end, 'R' | 'G' << 8);
    i64 group = find_index(layout.names, layout.groups, name);
    i64 start = layout.contigs[record.contig()], length = layout.contigs[record.contig() + 1] - 1 - start;
    u64 contig = (u64)layout.samples[group] << POSITION_BITS | (u64)start;
    bool is_later = record.position() > record.mate_position() ||
            (record.position() == record.mate_position() && flag & SECOND_MATE);
    bool has_mate = flag & PROPER_PAIR && !(flag & SUPPLEMENTARY) && record.mate_contig() == record.contig();
    const u8* mate = has_mate && is_later ? find_tag(record.tags(), span.end, 'M' | 'C' << 8) : nullptr;
    if (has_mate && is_later && missing_mc && (!mate || *mate != 'Z'))
        atomic_add(missing_mc + layout.samples[group], 1);
    i64 at = record.position();
    for (i64 i = 0; i < record.operation_count() && at < length; ++i) {
        i64 count = record.operation(i) >> 4, kind = record.operation(i) & 15;
        if (is_aligned(kind)) {
            i64 end = minimum(at + count, length);
            if (at < end) {
                put_interval(events, contig + (u64)at, contig + (u64)end, 1);
                if (mate && *mate == 'Z') subtract_mate(events, mate + 1, record.mate_position(), at, end, contig);
            }
        }
        if (covers_reference(kind)) at += count;
    }
}

// Count the events of each record. ends: where each record ends, plus `origin`. frontier: becomes the position of the
// last record, before which no later record starts. missing_mc: per sample, counts later mates without MC.
KERNEL void count_events(Items items, const u8* bytes OF(any), const i64* ends OF(items), i64 origin, Layout layout,
        i64* events OF(items), i64* frontier OF(1), u64* missing_mc OF(any), i64 records) {
    FOR_EACH(item, items) {
        RecordSpan span = span_of_record(bytes, ends, origin, item);
        BamFields record = span.record;
        Counter counter = {0};
        put_events(counter, span, layout, missing_mc);
        events[item] = counter.events;
        if (item == records - 1)
            *frontier = record.contig() < 0 ? END_OF_POSITIONS
                                            : layout.contigs[record.contig()] + maximum(record.position(), (i64)0);
    }
}

// Write position (sample << POSITION_BITS | position) and change of depth of each record's events. ends: as in
// count_events; event_ends: inclusive sum of its counts.
KERNEL void list_events(Items items, const u8* bytes OF(any), const i64* ends OF(items), i64 origin, Layout layout,
        const i64* event_ends OF(items), u64* positions OF(events), u64* changes OF(events), i64 events) {
    FOR_EACH(item, items) {
        i64 first = item ? event_ends[item - 1] : 0;
        if (first == event_ends[item]) continue;
        Writer writer = {positions + first, changes + first};
        put_events(writer, span_of_record(bytes, ends, origin, item), layout, nullptr);
    }
}

// found[item] = the number of the `size` ascending positions that are not greater than bounds[item].
KERNEL void find_bounds(
        Items items, const u64* positions OF(size), const u64* bounds OF(items), i64* found OF(items), i64 size) {
    FOR_EACH(item, items) found[item] = upper_bound(positions, size, bounds[item]);
}

// Merge two lists of events sorted by position. An item is one of `size` events of the first, then one of the second.
KERNEL void merge_events(Items items, const u64* positions OF(size), const u64* changes OF(size),
        const u64* other_positions OF(others), const u64* other_changes OF(others), u64* merged_positions OF(items),
        u64* merged_changes OF(items), i64 size, i64 others) {
    FOR_EACH(item, items) {
        bool is_first = item < size;
        i64 own = is_first ? item : item - size;
        u64 position = is_first ? positions[own] : other_positions[own];
        i64 before = is_first ? upper_bound(other_positions, others, position)
                : position    ? upper_bound(positions, size, position - 1)
                              : 0;
        merged_positions[own + before] = position;
        merged_changes[own + before] = is_first ? changes[own] : other_changes[own];
    }
}

// The counters of a contig in one thread.
struct Tally {
    u64 sums[COVERED];
    HOST_DEVICE void add(u64 length, u64 depth) {
        const u64 min_depth[COVERED] = {0, 1, 10, 20, 30};
        sums[SUM] += length * depth;
        for (i64 i = BY_ONE; i < COVERED; ++i) sums[i] += depth >= min_depth[i] ? length : 0;
    }
    HOST_DEVICE void flush(u64* contig) {
        for (i64 i = 0; i < COVERED; ++i) {
            if (sums[i]) atomic_add(contig + i, sums[i]);
            sums[i] = 0;
        }
    }
};

// Add the bases of each depth to the histogram and to the counters of each contig, a row of `covered`, of one sample.
// An item is a section of its sorted events before the frontier. positions: sample << POSITION_BITS | position; depths:
// after each event; contigs: start of each contig.
KERNEL void sweep_events(BlockItems items, const u64* positions OF(size), const i64* depths OF(size),
        const i64* contigs OF(contig_count + 1), u64* histogram OF(DEPTHS), u64* covered OF(contig_count* COVERED),
        i64 size, i64 contig_count, i64 frontier) {
    FOR_EACH(section, items) {
        BLOCK_ARRAY(u64, counted, DEPTHS);
        for (i64 i = block_thread(); i < DEPTHS; i += BLOCK_WIDTH) counted[i] = 0;
        block_sync();
        Tally tally = {};
        i64 last = minimum((section + 1) * SECTION, size), contig = -1;
        for (i64 at = section * SECTION + block_thread(); at < last; at += BLOCK_WIDTH) {
            i64 position = (i64)positions[at] & END_OF_POSITIONS;
            i64 next = at + 1 < size ? minimum((i64)positions[at + 1] & END_OF_POSITIONS, frontier) : frontier;
            if (next <= position || depths[at] <= 0) continue;
            if (contig < 0 || position < contigs[contig] || position >= contigs[contig + 1]) {
                if (contig >= 0) tally.flush(covered + contig * COVERED);
                contig = upper_bound(contigs, contig_count + 1, position) - 1;
            }
            tally.add((u64)(next - position), (u64)depths[at]);
            block_atomic_add(counted + minimum(depths[at], DEPTHS - 1), (u64)(next - position));
        }
        if (contig >= 0) tally.flush(covered + contig * COVERED);
        block_sync();
        for (i64 i = block_thread(); i < DEPTHS; i += BLOCK_WIDTH)
            if (counted[i]) atomic_add(histogram + i, counted[i]);
        block_sync();
    }
}
