// What each entry's CIGAR measures, and which entries prove true.
#include "mapping/alignments.cuh"
#include "common/sam_flags.cuh"
#include "mapping/pairs.cuh"
#include "mapping/record_plan.cuh"

// An item is an entry. One that scores below what it has to has no place.
KERNEL void measure_alignments(Items items, Queries queries, Reference reference, Scoring scoring, RecordPlan plan,
                               Extensions extensions, const Window* windows OF(any), Alignments alignments) {
    FOR_EACH(entry, items) {
        alignments.roles[entry] = plan.roles[entry];
        alignments.suboptimal_scores[entry] = plan.suboptimal_scores[entry];
        alignments.unmap(entry);
        if (plan.windows[entry] < 0) continue;
        i64 slot = plan.slots[entry];
        const Window& window = windows[plan.windows[entry]];
        Aligned aligned = {&reference,
                           nullptr,
                           queries.bases(slot, window.orientation),
                           queries.mask(slot, window.orientation),
                           extensions.reference_starts[entry],
                           extensions.cigar(entry),
                           extensions.counts[entry]};
        Measure measured = measure(aligned, scoring);
        if (measured.score < plan.min_scores[entry]) continue;
        alignments.contigs[entry] = (i32)reference.contig_of(aligned.start);
        alignments.mapqs[entry] = plan.mapqs[entry];
        // The rival's score counted bonuses for ends that it reached; it is reported without those that this place earned.
        Clips clips = clips_of(aligned.operations, aligned.count);
        bool reversed = queries.reversed(slot, window.orientation);
        i32 bonuses =
            (clips.left == 0 ? scoring.left_clip(reversed) : 0) + (clips.right == 0 ? scoring.right_clip(reversed) : 0);
        alignments.suboptimal_scores[entry] = maximum(plan.suboptimal_scores[entry] - bonuses, 0);
        alignments.scores[entry] = measured.score;
        alignments.edit_distances[entry] = measured.edits;
        alignments.reference_ends[entry] = measured.reference_end;
        alignments.reversed[entry] = reversed;
    }
}

// Phred of a piece that scores so much being at one of so many places by chance. A base has two bits, and a bit is three.
HOST_DEVICE i32 phred_of_chance(i32 score, i64 places, const Scoring& scoring) {
    i32 bits = 2 * (score / scoring.match);
    while (places > 1) places = (places + 1) / 2, --bits;
    return clamp(3 * bits, 0, 60);
}

// An item is a pair. An alignment that scores less than others have to stands by its mate alone: it has no place where that
// one has none or scores no more itself, and is no surer than its mate, or than chance lets it be.
KERNEL void check_weak_mates(Items items, Queries queries, Scoring scoring, InsertSizeTable inserts, RecordPlan plan,
                             Alignments alignments) {
    i64 sizes = 0;
    for (i32 direction = 0; direction < DIRECTIONS; ++direction)
        sizes += maximum(inserts.highs[direction] - inserts.lows[direction] + 1, (i64)0);
    FOR_EACH(pair, items) {
        i64 mates[2] = {plan.offsets[2 * pair], plan.offsets[2 * pair + 1]};
        if (mates[0] == mates[1] || mates[1] == plan.offsets[2 * pair + 2]) continue;  // a single read among pairs
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
            i64 places = sizes * queries.lengths[plan.slots[entry]];
            i32 most = minimum((i32)alignments.mapqs[mates[1 - side]],
                               phred_of_chance(alignments.scores[entry], places, scoring));
            alignments.mapqs[entry] = (u8)minimum((i32)alignments.mapqs[entry], most);
        }
    }
}

// The part of a read, as it was sequenced, that an entry aligns.
HOST_DEVICE Span aligned_span(const Extensions& extensions, i64 entry, bool reversed, i32 length) {
    Clips clips = clips_of(extensions.cigar(entry), extensions.counts[entry]);
    return reversed ? Span{clips.right, length - clips.left} : Span{clips.left, length - clips.right};
}

// The better place of a part, on an ALT contig, that proved to be none: what it took over goes back to that part.
HOST_DEVICE void give_back(const RecordPlan& plan, u8* roles, i64 first, i64 last, i64 entry) {
    i64 heir = first;
    while (heir < last && (heir == entry || plan.owners[heir] != entry || roles[heir] > SUPPLEMENTARY_ALIGNMENT))
        ++heir;
    for (i64 other = first; heir < last && other < last; ++other) {
        if (other == entry || plan.owners[other] != entry) continue;
        bool is_part = roles[other] <= SUPPLEMENTARY_ALIGNMENT;
        if (!is_part && plan.windows[other] == plan.windows[heir]) roles[other] = NOT_REPORTED;
        plan.owners[other] = (i32)(is_part ? other : heir);
    }
}

// An item is a record. Its entries but for secondary ones are dropped where its primary one has no place, where they have
// none, and where their CIGARs show that they are one place twice, or a part that is no part of its own.
KERNEL void drop_invalid_entries(Items items, Queries queries, Reference reference, RecordPlan plan,
                                 Extensions extensions, Alignments alignments) {
    u8* roles = alignments.roles;
    FOR_EACH(record, items) {
        i64 first = plan.offsets[record], last = plan.offsets[record + 1];
        i32 length = queries.lengths[queries.slot_of[record]];
        for (i64 entry = first + 1; entry < last && roles[entry] != SECONDARY_ALIGNMENT; ++entry) {
            bool reversed = alignments.reversed[entry], is_part = roles[entry] == SUPPLEMENTARY_ALIGNMENT;
            bool holds = alignments.mapped(first) && alignments.mapped(entry) &&
                         (is_part || roles[plan.owners[entry]] != NOT_REPORTED);
            Span span = {0, 0};
            if (holds && is_part) span = aligned_span(extensions, entry, reversed, length);
            for (i64 other = first; holds && other < entry; ++other) {
                // A part is also another place of what an ALT contig has better.
                if (roles[other] == NOT_REPORTED || plan.windows[other] == plan.windows[entry]) continue;
                holds = !alignments.are_duplicates(entry, other);
                if (holds && is_part && roles[other] <= SUPPLEMENTARY_ALIGNMENT &&
                    reference.on_alternate(alignments.contigs[entry]) ==
                        reference.on_alternate(alignments.contigs[other]))
                    holds = !span.overlaps(aligned_span(extensions, other, alignments.reversed[other], length));
            }
            for (i64 part = first; holds && is_part && part < last; ++part)  // by what is no bonus
                holds = part == entry || roles[part] > SUPPLEMENTARY_ALIGNMENT || plan.owners[part] != entry ||
                        alignments.scores[part] < alignments.scores[entry];
            if (holds) continue;
            roles[entry] = NOT_REPORTED;
            if (is_part) give_back(plan, roles, first, last, entry);
        }
        // A part may stand behind its other places, where the leftmost one became primary.
        for (i64 entry = first + 1; entry < last && roles[entry] != SECONDARY_ALIGNMENT; ++entry)
            if (roles[entry] == XA_HIT && roles[plan.owners[entry]] == NOT_REPORTED) roles[entry] = NOT_REPORTED;
    }
}

const i64 DUPLICATE_REACH = 512;  // diagonals between windows of which the bands may hold the same alignment

HOST_DEVICE bool may_be_duplicates(const Window& a, const Window& b) {
    i64 offset = a.diagonal - b.diagonal;
    return a.orientation == b.orientation && offset <= DUPLICATE_REACH && -offset <= DUPLICATE_REACH;
}

// An item is an entry. Secondary ones are dropped where they have no place, or the read has none, and where a part or a
// better place is their duplicate; they are ordered by their windows' diagonals. settled: the roles then, apart from those
// that neighbours see.
KERNEL void drop_duplicate_secondaries(Items items, Queries queries, RecordPlan plan, const Window* windows OF(any),
                                       Alignments alignments, u8* settled OF(items)) {
    const u8* roles = alignments.roles;
    FOR_EACH(entry, items) {
        settled[entry] = roles[entry];
        if (roles[entry] != SECONDARY_ALIGNMENT) continue;
        i64 record = queries.order[plan.slots[entry]], first = plan.offsets[record], last = plan.offsets[record + 1];
        bool holds = alignments.mapped(first) && alignments.mapped(entry);
        for (i64 part = first; holds && roles[part] != SECONDARY_ALIGNMENT; ++part)
            holds = roles[part] > SUPPLEMENTARY_ALIGNMENT || !alignments.are_duplicates(entry, part);
        const Window& own = windows[plan.windows[entry]];
        for (i64 step = -1; step <= 1; step += 2)
            for (i64 other = entry + step;
                 holds && other >= first && other < last && roles[other] == SECONDARY_ALIGNMENT; other += step) {
                if (!may_be_duplicates(own, windows[plan.windows[other]])) break;
                bool ahead = alignments.scores[other] != alignments.scores[entry]
                                 ? alignments.scores[other] > alignments.scores[entry]
                                 : other < entry;
                holds = !ahead || !alignments.are_duplicates(entry, other);
            }
        if (!holds) settled[entry] = NOT_REPORTED;
    }
}

// The entries of reads and, where they are paired, of their mates.
struct Flags {
    const RecordPlan& plan;
    const InsertSizeTable& inserts;
    const Alignments& alignments;
    const Queries& queries;
    bool paired, supplementary_as_secondary;

    HOST_DEVICE bool is_known(i64 record, i32 mark) const { return queries.flags[queries.slot_of[record]] & mark; }
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
        if (is_known(record, READ_FAILED)) flag |= QC_FAILED;
        if (!paired || is_known(record ^ 1, READ_ABSENT)) return flag;
        i64 mate = plan.offsets[record ^ 1];
        flag |= PAIRED | (record & 1 ? SECOND_MATE : FIRST_MATE);
        if (is_proper(plan.offsets[record & ~1ll], plan.offsets[record | 1])) flag |= PROPER_PAIR;
        return flag | (!alignments.mapped(mate) ? MATE_UNMAPPED : alignments.reversed[mate] ? MATE_REVERSED : 0);
    }
};

HOST_DEVICE i32 tally_of(i32 flag, i32 role, i32 mapq) {
    if (role == PRIMARY_ALIGNMENT && !(flag & UNMAPPED)) return mapq + (flag & PROPER_PAIR ? PROPER_TALLY : 0);
    if (role == PRIMARY_ALIGNMENT) return UNMAPPED_TALLY;
    return flag & SUPPLEMENTARY ? SUPPLEMENTARY_TALLY : flag & SECONDARY ? SECONDARY_TALLY : NO_TALLY;
}

// An item is an entry.
KERNEL void flag_entries(Items items, Queries queries, RecordPlan plan, InsertSizeTable inserts, Alignments alignments,
                         bool paired, bool supplementary_as_secondary) {
    Flags all = {plan, inserts, alignments, queries, paired, supplementary_as_secondary};
    FOR_EACH(entry, items) {
        i32 flag = all.of(entry, queries.order[plan.slots[entry]]);
        alignments.flags[entry] = (u16)flag;
        alignments.tallies[entry] = (u8)tally_of(flag, alignments.roles[entry], alignments.mapqs[entry]);
    }
}

const i64 ENTRIES_PER_BLOCK = 4096;

// An item is so many entries, or what is left of them; counts: of each tally, to which they are added.
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
