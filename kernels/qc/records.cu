// BAM records -> counts per read group, for everything that depends on a single record.
#include "common/binary_search.cuh"
#include "qc/counts.cuh"

const i64 SECTION = 1024;  // records counted by a thread block
// Records not counted in the MAPQ histogram.
const i64 EXCLUDED_FLAGS = UNMAPPED | SECONDARY | SUPPLEMENTARY | QC_FAILED | DUPLICATE_RECORD;
const i64 CONFIDENT_MAPQ = 5;  // as in samtools flagstat
const u64 ADAPTER_MASK = 0xFFFFFFFFFFFFull;
// Return the bases of an adapter, AGATCGGAAGAG, CTGTCTCTTATA or TGGAATTCTCGG, as twelve BAM codes of four bits.
HOST_DEVICE u64 adapter_letters(i64 number) {
    return number == 0 ? 0x141824411414ull : number == 1 ? 0x284828288181ull : 0x844118828244ull;
}
// Compute the unit of each record, its sort key: 2 * read group, plus 1 for a second mate. names: hashes of the read
// group names; ends: where records end, plus `origin`; indices: 0, 1, ...; longest: raised to the most bases.
KERNEL void find_units(Items items, const u8* bytes OF(any), const i64* ends OF(items), i64 origin,
        const u64* names OF(groups), u64* units OF(items), u32* indices OF(items), i32* longest OF(1), i64 groups) {
    FOR_EACH(item, items) {
        RecordSpan span = span_of_record(bytes, ends, origin, item);
        BamFields record = span.record;
        u64 name = hash_tag_text(record.tags(), span.end, 'R' | 'G' << 8);
        i64 group = find_index(names, groups, name), flag = record.flag();
        units[item] = (u64)(group * MATES + ((flag & PAIRED) && (flag & SECOND_MATE) && !(flag & FIRST_MATE)));
        indices[item] = (u32)item;
        if (record.letters() > load_relaxed(longest)) atomic_max(longest, (i32)record.letters());
    }
}

// Return the first index in [first, last) whose unit differs from units[first]; units ascend.
HOST_DEVICE i64 end_of_unit(const u64* units, i64 first, i64 last) {
    return partition_point(first, last, [&](i64 i) { return units[i] == units[first]; });
}
// Count a read whose mate is on another contig. counted: the counters of its unit, UNIT_COUNTERS in shared memory.
HOST_DEVICE void count_other_contig(BamFields record, u32* counted) {
    i64 flag = record.flag();
    if (!is_primary(flag) || (flag & (PAIRED | UNMAPPED | MATE_UNMAPPED)) != PAIRED) return;
    if (record.contig() == record.mate_contig()) return;
    i64 failed = flag & QC_FAILED ? FAILED_OTHER_CONTIG - OTHER_CONTIG : 0;
    block_atomic_add(counted + OTHER_CONTIG + failed, 1);
    if (record.mapq() >= CONFIDENT_MAPQ) block_atomic_add(counted + OTHER_CONTIG_MAPQ5 + failed, 1);
    if (!record.letters()) block_atomic_add(counted + EMPTY_OTHER_CONTIG, 1);
}

// Count a mapped read of a pair by orientation and insert size, in counts.inserts of the read group of `unit`.
HOST_DEVICE void count_insert(BamFields record, Counts counts, i64 unit) {
    i64 flag = record.flag(), size = record.template_length();
    if (size < 0) size = -size;
    if (!size && record.contig() != record.mate_contig()) return;
    i64 ahead = record.mate_position() - record.position();
    bool is_first = flag & FIRST_MATE, is_forward = !(flag & REVERSED), mate_forward = !(flag & MATE_REVERSED);
    i64 orientation = INWARD;
    if (is_forward == mate_forward) orientation = OTHER_ORIENTATION;
    else if (ahead) orientation = (is_first == (ahead > 0)) == (is_first == is_forward) ? INWARD : OUTWARD;
    i64 row = (unit / MATES * ORIENTATIONS + orientation) * INSERTS;
    atomic_add(counts.inserts + row + minimum(size, INSERTS - 1), 1);
}

// Count a read's GC share and mean quality in `counted`, and its adapters, by their first cycle, in counts.adapters.
HOST_DEVICE void count_read(BamFields record, u32* counted, Counts counts, i64 unit) {
    i64 letters = record.letters(), known = 0, strong = 0, sum = 0;
    bool is_reversed = record.flag() & REVERSED;
    const u8 *qualities = record.qualities(), *packed = record.packed();
    u64 window = 0;
    i64 found[ADAPTERS];
    for (i64 a = 0; a < ADAPTERS; ++a) found[a] = -1;
    for (i64 cycle = 0; cycle < letters; ++cycle) {
        i64 letter = letter_at(packed, is_reversed ? letters - 1 - cycle : cycle);
        if (is_reversed) letter = complement_of(letter);
        i64 base = base_of(letter);
        known += base < 4;
        strong += base == 1 || base == 2;
        sum += qualities[cycle];
        window = (window << 4 | (u64)letter) & ADAPTER_MASK;
        for (i64 a = 0; a < ADAPTERS; ++a)
            if (window == adapter_letters(a) && found[a] < 0) found[a] = cycle + 1 - ADAPTER_BASES;
    }
    // Spread each count of G and C over its width, 1 / known, by a pseudorandom point; else some percentages get two.
    u64 point = splitmix64(window ^ (u64)sum << 48) >> 48;
    if (known)
        block_atomic_add(counted + GC_SHARE + (((u64)strong << 16 | point) * GC_SHARES / ((u64)(known + 1) << 16)), 1);
    if (record.has_qualities())
        block_atomic_add(counted + MEAN_QUALITY + minimum((2 * sum + letters) / (2 * letters), QUALITIES - 1), 1);
    for (i64 a = 0; a < ADAPTERS; ++a)
        if (found[a] >= 0)
            atomic_add(counts.adapters + (unit * ADAPTERS + a) * CYCLES + minimum(found[a], CYCLES - 1), 1);
}

// Count a mapped read's mismatches by cycle, up to the first outside the read. md: the tag MD, from its type byte on.
HOST_DEVICE void count_mismatches(BamFields record, const u8* md, Counts counts, i64 unit) {
    i64 letters = record.letters(), operations = record.operation_count();
    bool is_reversed = record.flag() & REVERSED;
    const u8* packed = record.packed();
    i64 aligned = 0;  // aligned bases before the current base
    // The CIGAR operation there: index of the next one, aligned bases before it and in it, its first read base.
    i64 next = 0, begun = 0, left = 0, at = 0;
    const u8* text = md + 1;
    while (*text) {
        if (*text >= '0' && *text <= '9') {
            i64 number = 0;
            for (; *text >= '0' && *text <= '9'; ++text) number = minimum(10 * number + (*text - '0'), letters);
            aligned += number;
            continue;
        }
        if (*text == '^') {
            for (++text; *text >= 'A' && *text <= 'z'; ++text) {}
            continue;
        }
        ++text;
        while (aligned >= begun + left && next < operations) {
            begun += left;
            at += left;
            left = 0;
            i64 count = record.operation(next) >> 4, kind = record.operation(next++) & 15;
            if (kind == INSERTION || kind == SOFT_CLIP) at += count;
            else if (is_aligned(kind)) left = count;
        }
        i64 letter = at + aligned - begun;
        if (aligned >= begun + left || letter >= letters) return;
        ++aligned;
        if (letter_at(packed, letter) == 15) continue;
        i64 cycle = is_reversed ? letters - 1 - letter : letter;
        atomic_add(counts.mismatches + unit * CYCLES + minimum(cycle, CYCLES - 1), 1);
    }
}

// Count the first cycle of a mapped read's unclipped bases, and the cycle after them, in `counted`.
HOST_DEVICE void count_aligned(BamFields record, u32* counted) {
    i64 first = 0, end = record.letters();
    bool is_after = false;
    for (i64 i = 0; i < record.operation_count(); ++i) {
        i64 count = record.operation(i) >> 4, kind = record.operation(i) & 15;
        if (kind == SOFT_CLIP) {
            if (is_after) end -= count;
            else first += count;
        }
        is_after |= kind != SOFT_CLIP && kind != HARD_CLIP;
    }
    if (record.flag() & REVERSED) {
        i64 last = record.letters() - first;
        first = record.letters() - end;
        end = last;
    }
    if (first < 0 || first >= end || first >= CYCLES) return;
    block_atomic_add(counted + ALIGNED_START + first, 1);
    if (end < CYCLES) block_atomic_add(counted + ALIGNED_END + end, 1);
}

// Count what the alignment of a mapped, not secondary record says: bases, NM, MAPQ, cycles, mismatches, insert size.
HOST_DEVICE void count_alignment(RecordSpan span, u32* counted, Counts counts, i64 unit) {
    BamFields record = span.record;
    i64 bases = 0, flag = record.flag();
    for (i64 i = 0; i < record.operation_count(); ++i) {
        i64 count = record.operation(i) >> 4, kind = record.operation(i) & 15;
        if (is_aligned(kind) || kind == INSERTION) bases += count;
    }
    block_atomic_add(counted + ALIGNED_BASES, (u32)bases);
    if (const u8* value = find_tag(record.tags(), span.end, 'N' | 'M' << 8))
        block_atomic_add(counted + DIFFERENCES, (u32)tag_integer(value));
    if (!is_primary(flag)) return;
    if (!record.mapq()) block_atomic_add(counted + MAPQ_ZERO, 1);
    if (!(flag & EXCLUDED_FLAGS)) block_atomic_add(counted + MAPQ + record.mapq(), 1);
    const u8* md = find_tag(record.tags(), span.end, 'M' | 'D' << 8);
    if (md && *md == 'Z') {
        count_aligned(record, counted);
        count_mismatches(record, md, counts, unit);
    }
    if (flag & PAIRED && !(flag & MATE_UNMAPPED)) count_insert(record, counts, unit);
}

// Add all counters, except the counters by cycle of count_cycles, to `counts`. An item is a section of the records in
// `order`, sorted by unit; units: their ascending units.
KERNEL void count_records(BlockItems items, const u8* bytes OF(any), const i64* ends OF(records), i64 origin,
        const u64* units OF(records), const u32* order OF(records), Counts counts, i64 records) {
    FOR_EACH(section, items) {
        BLOCK_ARRAY(u32, counted, UNIT_COUNTERS);
        i64 first = section * SECTION, last = minimum(first + SECTION, records);
        while (first < last) {
            i64 unit = (i64)units[first], end = end_of_unit(units, first, last);
            for (i64 i = block_thread(); i < UNIT_COUNTERS; i += BLOCK_WIDTH) counted[i] = 0;
            block_sync();
            for (i64 at = first + block_thread(); at < end; at += BLOCK_WIDTH) {
                RecordSpan span = span_of_record(bytes, ends, origin, order[at]);
                i64 flag = span.record.flag() & (FLAGS - 1), letters = span.record.letters();
                block_atomic_add(counted + FLAG + flag, 1);
                block_atomic_add(counted + FLAG_LETTERS + flag, (u32)letters);
                count_other_contig(span.record, counted);
                if (!letters) atomic_add(counts.empty + unit * FLAGS + flag, 1);
                if (!letters || flag & SECONDARY) continue;
                if (is_primary(flag)) count_read(span.record, counted, counts, unit);
                if (!(flag & UNMAPPED)) count_alignment(span, counted, counts, unit);
            }
            block_sync();
            for (i64 i = block_thread(); i < UNIT_COUNTERS; i += BLOCK_WIDTH)
                if (counted[i]) atomic_add(counts.records + unit * UNIT_COUNTERS + i, counted[i]);
            block_sync();
            first = end;
        }
    }
}

// Cycles counted together by a thread block, and words per cycle: an odd number, so that threads with the same quality
// in different cycles access different banks of shared memory.
const i64 TILE_CYCLES = 32, QUALITY_WORDS = 95;
// Count qualities and bases of primary records by cycle. An item is one of `tiles` tiles of TILE_CYCLES cycles of a
// section of the records, which are sorted by unit as in count_records.
KERNEL void count_cycles(BlockItems items, const u8* bytes OF(any), const i64* ends OF(records), i64 origin,
        const u64* units OF(records), const u32* order OF(records), Counts counts, i64 records, i64 tiles) {
    FOR_EACH(item, items) {
        BLOCK_ARRAY(u32, qualities, TILE_CYCLES * QUALITY_WORDS);
        BLOCK_ARRAY(u32, bases, TILE_CYCLES * BASES);
        const i64 THREADS_PER_RECORD = minimum((i64)BLOCK_WIDTH, TILE_CYCLES),
                  RECORDS_AT_ONCE = BLOCK_WIDTH / THREADS_PER_RECORD;
        i64 first = item / tiles * SECTION, last = minimum(first + SECTION, records), tile = item % tiles * TILE_CYCLES;
        while (first < last) {
            i64 unit = (i64)units[first], end = end_of_unit(units, first, last);
            for (i64 i = block_thread(); i < TILE_CYCLES * QUALITY_WORDS; i += BLOCK_WIDTH) qualities[i] = 0;
            for (i64 i = block_thread(); i < TILE_CYCLES * BASES; i += BLOCK_WIDTH) bases[i] = 0;
            block_sync();
            for (i64 at = first + block_thread() / THREADS_PER_RECORD; at < end; at += RECORDS_AT_ONCE) {
                BamFields record = span_of_record(bytes, ends, origin, order[at]).record;
                i64 flag = record.flag(), letters = record.letters();
                if (!is_primary(flag)) continue;
                bool is_reversed = flag & REVERSED, has_qualities = record.has_qualities();
                const u8 *own = record.qualities(), *packed = record.packed();
                for (i64 i = block_thread() % THREADS_PER_RECORD; i < minimum(TILE_CYCLES, letters - tile);
                        i += THREADS_PER_RECORD) {
                    i64 letter = is_reversed ? letters - 1 - tile - i : tile + i,
                        base = base_of(letter_at(packed, letter));
                    if (is_reversed && base < 4) base = 3 - base;
                    block_atomic_add(bases + i * BASES + base, 1);
                    u8 quality = own[letter];
                    if (has_qualities)
                        block_atomic_add(qualities + i * QUALITY_WORDS + minimum((i64)quality, QUALITIES - 1), 1);
                }
            }
            block_sync();
            for (i64 i = block_thread(); i < TILE_CYCLES * QUALITIES; i += BLOCK_WIDTH) {
                i64 cycle = i / QUALITIES, quality = i % QUALITIES, row = minimum(tile + cycle, CYCLES - 1);
                u32 count = qualities[cycle * QUALITY_WORDS + quality];
                if (count) atomic_add(counts.qualities + (unit * CYCLES + row) * QUALITIES + quality, count);
            }
            for (i64 i = block_thread(); i < TILE_CYCLES * BASES; i += BLOCK_WIDTH) {
                i64 row = minimum(tile + i / BASES, CYCLES - 1);
                if (bases[i]) atomic_add(counts.bases + (unit * CYCLES + row) * BASES + i % BASES, bases[i]);
            }
            block_sync();
            first = end;
        }
    }
}
