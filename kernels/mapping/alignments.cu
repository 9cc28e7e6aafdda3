// Score the CIGAR of each entry, drop entries that turn out to be invalid, and set SAM flags.
#include "mapping/alignments.cuh"
#include "common/sam_flags.cuh"
#include "mapping/pairs.cuh"
#include "mapping/record_plan.cuh"

// Score each entry's CIGAR and fill its row of `alignments`; below its minimum score it becomes unmapped.
KERNEL void measure_alignments(Items items, Queries queries, Reference reference, Scoring scoring, RecordPlan plan,
        Extensions extensions, const Window* windows OF(any), Alignments alignments) {
    FOR_EACH(entry, items) {
        alignments.roles[entry] = plan.roles[entry];
        alignments.suboptimal_scores[entry] = plan.suboptimal_scores[entry];
        alignments.unmap(entry);
        if (plan.windows[entry] < 0) continue;
        i64 slot = plan.slots[entry];
        const Window& window = windows[plan.windows[entry]];
        AlignedRead aligned = {&reference, nullptr, queries.bases(slot, window.orientation),
                queries.mask(slot, window.orientation), extensions.reference_starts[entry], extensions.cigar(entry),
                extensions.counts[entry]};
        AlignmentMeasure measured = measure(aligned, scoring);
        if (measured.score < plan.min_scores[entry]) continue;
        alignments.contigs[entry] = (i32)reference.contig_of(aligned.start);
        alignments.mapqs[entry] = plan.mapqs[entry];
        // The suboptimal score includes the rival's bonuses for reached ends; subtract the bonuses of this alignment.
        Clips clips = clips_of(aligned.operations, aligned.count);
        bool reversed = queries.reversed(slot, window.orientation);
        i32 bonuses = (clips.left == 0 ? scoring.left_clip(reversed) : 0) +
                (clips.right == 0 ? scoring.right_clip(reversed) : 0);
        alignments.suboptimal_scores[entry] = maximum(plan.suboptimal_scores[entry] - bonuses, 0);
        alignments.scores[entry] = measured.score;
        alignments.edit_distances[entry] = measured.edits;
        alignments.reference_ends[entry] = measured.reference_end;
        alignments.reversed[entry] = reversed;
    }
}

// Return the phred of a chance alignment of this score at one of `positions` positions: 2 bits a base, 3 phred a bit.
HOST_DEVICE i32 chance_hit_phred(i32 score, i64 positions, const Scoring& scoring) {
    i32 bits = 2 * (score / scoring.match);
    while (positions > 1) positions = (positions + 1) / 2, --bits;
    return clamp(3 * bits, 0, 60);
}

// An item is a pair. An alignment below min_score is supported by its mate alone: it becomes unmapped unless the mate
// reaches min_score, and its MAPQ is at most the mate's and at most the phred of a chance hit.
KERNEL void check_weak_mates(Items items, Queries queries, Scoring scoring, InsertSizeTable inserts, RecordPlan plan,
        Alignments alignments) {
    i64 sizes = 0;
    for (i32 direction = 0; direction < DIRECTIONS; ++direction)
        sizes += maximum(inserts.highs[direction] - inserts.lows[direction] + 1, (i64)0);
    FOR_EACH(pair, items) {
        i64 mates[2] = {plan.offsets[2 * pair], plan.offsets[2 * pair + 1]};
        if (mates[0] == mates[1] || mates[1] == plan.offsets[2 * pair + 2])
            continue;  // one of them is absent: a single read among pairs
        bool weak[2], strong[2];
        for (i32 side = 0; side < 2; ++side) {
            bool enough = alignments.scores[mates[side]] >= scoring.min_score;
            strong[side] = alignments.mapped(mates[side]) && enough;
            weak[side] = alignments.mapped(mates[side]) && !enough;
        }
        for (i32 side = 0; side < 2; ++side) {
            i64 entry = mates[side];
            if (!weak[side]) continue;
            if (!strong[1 - side]) {
                alignments.unmap(entry);
                continue;
            }
            i64 positions = sizes * queries.lengths[plan.slots[entry]];
            i32 cap = minimum((i32)alignments.mapqs[mates[1 - side]],
                    chance_hit_phred(alignments.scores[entry], positions, scoring));
            alignments.mapqs[entry] = (u8)minimum((i32)alignments.mapqs[entry], cap);
        }
    }
}

// Return the interval of the read as sequenced, of `length` bases, that an entry's CIGAR aligns.
HOST_DEVICE Span aligned_span(const Extensions& extensions, i64 entry, bool reversed, i32 length) {
    Clips clips = clips_of(extensions.cigar(entry), extensions.counts[entry]);
    return reversed ? Span{clips.right, length - clips.left} : Span{clips.left, length - clips.right};
}

// Undo the ownership of an invalid entry on an ALT contig: the part that it was better than owns its hits again.
// [first, last): the entries of the read.
HOST_DEVICE void return_to_part(const RecordPlan& plan, u8* roles, i64 first, i64 last, i64 entry) {
    i64 part = first;
    while (part < last && (part == entry || plan.owners[part] != entry || roles[part] > SUPPLEMENTARY_ALIGNMENT))
        ++part;
    for (i64 other = first; part < last && other < last; ++other) {
        if (other == entry || plan.owners[other] != entry) continue;
        bool is_part = roles[other] <= SUPPLEMENTARY_ALIGNMENT;
        if (!is_part && plan.windows[other] == plan.windows[part]) roles[other] = NOT_REPORTED;
        plan.owners[other] = (i32)(is_part ? other : part);
    }
}

// An item is a read. Drop its non-secondary entries (role NOT_REPORTED) if they or the primary entry are unmapped, if
// they duplicate an earlier entry, or if they are parts whose CIGARs overlap another part.
KERNEL void drop_invalid_entries(Items items, Queries queries, Reference reference, RecordPlan plan,
        Extensions extensions, Alignments alignments) {
    u8* roles = alignments.roles;
    FOR_EACH(record, items) {
        i64 first = plan.offsets[record], last = plan.offsets[record + 1];
        i32 length = queries.lengths[queries.slot_of[record]];
        for (i64 entry = first + 1; entry < last && roles[entry] != SECONDARY_ALIGNMENT; ++entry) {
            bool reversed = alignments.reversed[entry], is_part = roles[entry] == SUPPLEMENTARY_ALIGNMENT;
            bool is_valid = alignments.mapped(first) && alignments.mapped(entry) &&
                    (is_part || roles[plan.owners[entry]] != NOT_REPORTED);
            Span span = {0, 0};
            if (is_valid && is_part) span = aligned_span(extensions, entry, reversed, length);
            for (i64 other = first; is_valid && other < entry; ++other) {
                // A part may be a hit of an entry on an ALT contig too, with the same window.
                if (roles[other] == NOT_REPORTED || plan.windows[other] == plan.windows[entry]) continue;
                is_valid = !alignments.are_duplicates(entry, other);
                if (is_valid && is_part && roles[other] <= SUPPLEMENTARY_ALIGNMENT &&
                        reference.on_alternate(alignments.contigs[entry]) ==
                                reference.on_alternate(alignments.contigs[other]))
                    is_valid = !span.overlaps(aligned_span(extensions, other, alignments.reversed[other], length));
            }
            for (i64 part = first; is_valid && is_part && part < last; ++part)  // compared without bonuses
                is_valid = part == entry || roles[part] > SUPPLEMENTARY_ALIGNMENT || plan.owners[part] != entry ||
                        alignments.scores[part] < alignments.scores[entry];
            if (is_valid) continue;
            roles[entry] = NOT_REPORTED;
            if (is_part) return_to_part(plan, roles, first, last, entry);
        }
        // A part may come after its hits if the leftmost part became primary.
        for (i64 entry = first + 1; entry < last && roles[entry] != SECONDARY_ALIGNMENT; ++entry)
            if (roles[entry] == XA_HIT && roles[plan.owners[entry]] == NOT_REPORTED) roles[entry] = NOT_REPORTED;
    }
}

const i64 DUPLICATE_REACH = 512;  // maximum diagonal distance of windows whose bands may contain the same alignment
// Return true if two windows are so close that their bands may contain the same alignment.
HOST_DEVICE bool may_be_duplicates(const Window& a, const Window& b) {
    i64 offset = a.diagonal - b.diagonal;
    return a.orientation == b.orientation && offset <= DUPLICATE_REACH && -offset <= DUPLICATE_REACH;
}

// Drop secondary entries (items) that are unmapped, whose read is unmapped, or that duplicate a part or a better
// secondary entry. They are sorted by the diagonals of their windows. new_roles: the roles afterwards.
KERNEL void drop_duplicate_secondaries(Items items, Queries queries, RecordPlan plan, const Window* windows OF(any),
        Alignments alignments, u8* new_roles OF(items)) {
    const u8* roles = alignments.roles;
    FOR_EACH(entry, items) {
        new_roles[entry] = roles[entry];
        if (roles[entry] != SECONDARY_ALIGNMENT) continue;
        i64 record = queries.order[plan.slots[entry]], first = plan.offsets[record], last = plan.offsets[record + 1];
        bool is_valid = alignments.mapped(first) && alignments.mapped(entry);
        for (i64 part = first; is_valid && roles[part] != SECONDARY_ALIGNMENT; ++part)
            is_valid = roles[part] > SUPPLEMENTARY_ALIGNMENT || !alignments.are_duplicates(entry, part);
        const Window& own = windows[plan.windows[entry]];
        for (i64 step = -1; step <= 1; step += 2)
            for (i64 other = entry + step;
                    is_valid && other >= first && other < last && roles[other] == SECONDARY_ALIGNMENT; other += step) {
                if (!may_be_duplicates(own, windows[plan.windows[other]])) break;
                bool ahead = alignments.scores[other] != alignments.scores[entry]
                        ? alignments.scores[other] > alignments.scores[entry]
                        : other < entry;
                is_valid = !ahead || !alignments.are_duplicates(entry, other);
            }
        if (!is_valid) new_roles[entry] = NOT_REPORTED;
    }
}

// The SAM flags of the entries of a batch.
struct FlagBuilder {
    const RecordPlan& plan;
    const InsertSizeTable& inserts;
    const Alignments& alignments;
    const Queries& queries;
    bool paired, supplementary_as_secondary;
    HOST_DEVICE bool has_flag(i64 record, i32 mark) const { return queries.flags[queries.slot_of[record]] & mark; }
    HOST_DEVICE FragmentEnd fragment_end(i64 entry) const {
        return FragmentEnd{alignments.fragment_end(entry), alignments.reversed[entry] != 0};
    }
    HOST_DEVICE bool is_proper(i64 first, i64 second) const {
        return alignments.mapped(first) && alignments.contigs[first] == alignments.contigs[second] &&
                inserts.penalty(distance_of(fragment_end(first), fragment_end(second))) != IMPROPER;
    }
    HOST_DEVICE i32 of(i64 entry, i64 record) const {
        i32 role = alignments.roles[entry];
        i32 flag = !alignments.mapped(entry) ? UNMAPPED : alignments.reversed[entry] ? REVERSED : 0;
        if (role == SECONDARY_ALIGNMENT) flag |= SECONDARY;
        if (role == SUPPLEMENTARY_ALIGNMENT) flag |= supplementary_as_secondary ? SECONDARY : SUPPLEMENTARY;
        if (has_flag(record, READ_FAILED)) flag |= QC_FAILED;
        if (!paired || has_flag(record ^ 1, READ_ABSENT)) return flag;
        i64 mate = plan.offsets[record ^ 1];
        flag |= PAIRED | (record & 1 ? SECOND_MATE : FIRST_MATE);
        if (is_proper(plan.offsets[record & ~1ll], plan.offsets[record | 1])) flag |= PROPER_PAIR;
        return flag | (!alignments.mapped(mate) ? MATE_UNMAPPED : alignments.reversed[mate] ? MATE_REVERSED : 0);
    }
};

// Return the counter that an entry with these SAM flags, Role and MAPQ adds to (see Tally).
HOST_DEVICE i32 tally_of(i32 flag, i32 role, i32 mapq) {
    if (role == PRIMARY_ALIGNMENT && !(flag & UNMAPPED)) return mapq + (flag & PROPER_PAIR ? PROPER_TALLY : 0);
    if (role == PRIMARY_ALIGNMENT) return UNMAPPED_TALLY;
    return flag & SUPPLEMENTARY ? SUPPLEMENTARY_TALLY : flag & SECONDARY ? SECONDARY_TALLY : NO_TALLY;
}

// Set SAM flags and tally of each entry (item). paired: reads are pairs; supplementary_as_secondary: as bwa mem -M.
KERNEL void flag_entries(Items items, Queries queries, RecordPlan plan, InsertSizeTable inserts, Alignments alignments,
        bool paired, bool supplementary_as_secondary) {
    FlagBuilder all = {plan, inserts, alignments, queries, paired, supplementary_as_secondary};
    FOR_EACH(entry, items) {
        i32 flag = all.of(entry, queries.order[plan.slots[entry]]);
        alignments.flags[entry] = (u16)flag;
        alignments.tallies[entry] = (u8)tally_of(flag, alignments.roles[entry], alignments.mapqs[entry]);
    }
}

const i64 ENTRIES_PER_BLOCK = 4096;
// Count the entries of each tally: add to counts[tally]. An item is ENTRIES_PER_BLOCK entries.
KERNEL void count_tallies(BlockItems items, const u8* tallies OF(entries), u64* counts OF(TALLIES), i64 entries) {
    FOR_EACH(section, items) {
        BLOCK_ARRAY(u32, found, TALLIES);
        for (i32 tally = block_thread(); tally < TALLIES; tally += BLOCK_WIDTH) found[tally] = 0;
        block_sync();
        i64 last = minimum((section + 1) * ENTRIES_PER_BLOCK, entries);
        for (i64 entry = section * ENTRIES_PER_BLOCK + block_thread(); entry < last; entry += BLOCK_WIDTH)
            block_atomic_add(&found[tallies[entry]], 1);
        block_sync();
        for (i32 tally = block_thread(); tally < TALLIES; tally += BLOCK_WIDTH)
            if (found[tally]) atomic_add(&counts[tally], found[tally]);
        block_sync();
    }
}
