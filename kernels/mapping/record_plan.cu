// Decide which windows of a read are reported, and in which role.
#include "common/binary_search.cuh"
#include "mapping/record_plan.cuh"

// An entry of a read. rank: rank of its window, -1 for none; owner: index of an entry of the same read.
struct Entry {
    i32 rank, role, owner, mapq, suboptimal_score;
};

// The user's options of reporting (class Reporting).
struct Reporting {
    i32 xa_limit;           // a part with more other placements has no XA
    i32 alternate_limit;    // the same limit if one of them is on an ALT contig
    i32 xa_share;           // minimum score of a placement in XA, in percent of the part's score
    bool leftmost_primary;  // the part that starts first in the read is the primary record
};

const i32 MAX_ENTRIES = MAX_WINDOWS + 4;  // entries of a read: some parts are hits of an entry on an ALT contig as well
// The entries of one read, selected from its windows.
struct Selection {
    const Window* windows;
    i32 count, length, unexamined, bases_per_difference;
    u64 hash;
    bool flipped;
    Entry entries[MAX_ENTRIES];
    i32 entry_count;
    HOST_DEVICE bool ranks_before(i32 i, i32 j) const {
        const Window &a = windows[i], &b = windows[j];
        if (a.score != b.score) return a.score > b.score;
        u64 tie_a = tie_break(hash, a.diagonal), tie_b = tie_break(hash, b.diagonal);
        return tie_a != tie_b ? tie_a < tie_b : a.orientation < b.orientation;
    }
    // Return the entry of another part. Windows on ALT contigs are rivals only of windows on ALT contigs.
    HOST_DEVICE Entry supplementary(i32 rank, const Scoring& scoring) const {
        const Window& window = windows[rank];
        i32 bases = span_of(window, length).length(), suboptimal_score = 0;
        i32 variant =
                variant_phred_of_loss(bases, scoring.perfect(bases) - window.score, bases_per_difference, scoring);
        Rivals rivals = {0};
        for (i32 i = 0; i < count; ++i) {
            if (i == rank || windows[i].alternate > window.alternate || !is_rival(windows[i], window, length)) continue;
            suboptimal_score = maximum(suboptimal_score, windows[i].score);
            rivals.add(maximum(points_to_phred(window.score - windows[i].score, variant, scoring), 0));
        }
        rivals.add(unexamined_deficit(unexamined, window.score, variant, scoring));
        i32 limit = window.alternate ? 60 : entries[0].mapq;
        return Entry{
                rank, SUPPLEMENTARY_ALIGNMENT, entry_count, minimum(rivals.mapping_quality(), limit), suboptimal_score};
    }
    HOST_DEVICE bool is_part(i32 entry) const { return entries[entry].role <= SUPPLEMENTARY_ALIGNMENT; }
    HOST_DEVICE bool is_reported(const Window& window) const {
        for (i32 i = 0; i < entry_count; ++i) {
            const Window& reported = windows[entries[i].rank];
            if (is_near(window, reported) || is_same_alignment(window, reported)) return true;
        }
        return false;
    }
    HOST_DEVICE bool is_xa_hit(const Window& window, const Window& part, const Reporting& reporting) const {
        return window.score * 100 >= part.score * reporting.xa_share;
    }
    // Return the entry of a window: another part, or an XA hit of a part, or NOT_REPORTED.
    HOST_DEVICE Entry make_entry(i32 rank, const Reporting& reporting, const Scoring& scoring) const {
        const Window& window = windows[rank];
        Span span = span_of(window, length);
        i32 owner = 0;
        while (owner < entry_count && !(is_part(owner) && span.overlaps(span_of(windows[entries[owner].rank], length))))
            ++owner;
        if (owner == entry_count) return supplementary(rank, scoring);
        Entry entry = {rank, NOT_REPORTED, owner, 0, 0};
        if (!is_reported(window) && is_xa_hit(window, windows[entries[owner].rank], reporting)) entry.role = XA_HIT;
        return entry;
    }
    // Return the part, else entry_count, that overlaps an ALT window and is on an ALT contig or scores no less.
    HOST_DEVICE i32 part_of_alternate(const Window& window) const {
        Span span = span_of(window, length);
        i32 owner = entry_count;
        for (i32 i = 0; i < entry_count; ++i) {
            const Window& part = windows[entries[i].rank];
            if (!is_part(i) || !span.overlaps(span_of(part, length))) continue;
            if (part.alternate) return i;
            if (part.score >= window.score && owner == entry_count) owner = i;
        }
        return owner;
    }
    // Make the last entry, on an ALT contig, the owner of the overlapping parts with lower scores and of their hits.
    HOST_DEVICE void reassign_to_alternate(const Reporting& reporting) {
        i32 winner = entry_count - 1;
        const Window& better = windows[entries[winner].rank];
        Span span = span_of(better, length);
        for (i32 part = 0; part < winner; ++part) {
            const Window& own = windows[entries[part].rank];
            if (!is_part(part) || own.alternate || entries[part].owner != part) continue;
            if (own.score >= better.score || !span.overlaps(span_of(own, length))) continue;
            for (i32 i = 0; i < winner; ++i) {
                if (entries[i].owner != part) continue;
                entries[i].owner = winner;
                if (entries[i].role == XA_HIT && !is_xa_hit(windows[entries[i].rank], better, reporting))
                    entries[i].role = NOT_REPORTED;
            }
            if (entry_count < MAX_ENTRIES && is_xa_hit(own, better, reporting))
                entries[entry_count++] = Entry{entries[part].rank, XA_HIT, winner, 0, 0};
        }
    }
    // Add placements on ALT contigs. A placement that scores more than its part becomes a record.
    HOST_DEVICE void add_alternates(const Reporting& reporting, const Scoring& scoring) {
        u32 remaining = 0;
        for (i32 i = 0; i < count; ++i)
            if (windows[i].alternate && windows[i].score >= scoring.min_score) remaining |= 1u << i;
        while (remaining && entry_count < MAX_ENTRIES) {
            i32 next = pop_best(remaining), owner = part_of_alternate(windows[next]);
            if (is_reported(windows[next])) continue;
            if (owner == entry_count) {
                Entry winner = supplementary(next, scoring);
                entries[entry_count++] = winner;
                reassign_to_alternate(reporting);
            } else if (is_xa_hit(windows[next], windows[entries[owner].rank], reporting))
                entries[entry_count++] = Entry{next, XA_HIT, owner, 0, 0};
        }
    }
    // Drop all XA hits of a part with more than the limit.
    HOST_DEVICE void limit_xa_hits(const Reporting& reporting) {
        for (i32 part = 0; part < entry_count; ++part) {
            i32 found = 0, limit = reporting.xa_limit;
            for (i32 i = 0; i < entry_count; ++i) {
                if (entries[i].role != XA_HIT || entries[i].owner != part) continue;
                ++found;
                if (windows[entries[i].rank].alternate) limit = reporting.alternate_limit;
            }
            for (i32 i = 0; found > limit && i < entry_count; ++i)
                if (entries[i].role == XA_HIT && entries[i].owner == part) entries[i].role = NOT_REPORTED;
        }
    }
    HOST_DEVICE bool is_certain(const Window& window, const Scoring& scoring) const {
        return is_alignment(window, length, (window.orientation != 0) != flipped, scoring);
    }
    HOST_DEVICE i32 read_start(const Entry& entry) const {
        Span span = span_of(windows[entry.rank], length);
        return flipped ? length - span.end : span.start;
    }
    // Make the leftmost part primary. A part that may turn out to be invalid cannot be: the read would be unmapped.
    HOST_DEVICE void make_leftmost_primary(const Reporting& reporting, const Scoring& scoring) {
        i32 first = 0;
        for (i32 i = 1; i < entry_count; ++i) {
            if (entries[i].role != SUPPLEMENTARY_ALIGNMENT || !is_certain(windows[entries[i].rank], scoring)) continue;
            if (read_start(entries[i]) < read_start(entries[first])) first = i;
        }
        if (first == 0) return;
        Entry held = entries[0];
        entries[0] =
                Entry{entries[first].rank, PRIMARY_ALIGNMENT, 0, entries[first].mapq, entries[first].suboptimal_score};
        entries[first] = Entry{held.rank, SUPPLEMENTARY_ALIGNMENT, first, held.mapq, held.suboptimal_score};
        for (i32 i = 1; i < entry_count; ++i) {
            i32 owner = entries[i].owner;
            if (entries[i].role > SUPPLEMENTARY_ALIGNMENT)
                entries[i].owner = owner == 0 ? first : owner == first ? 0 : owner;
        }
    }
    // Return a mask of the windows that may be reported besides the primary one.
    HOST_DEVICE u32 eligible(i32 primary, const Reporting& reporting, const Scoring& scoring) const {
        Span span = span_of(windows[primary], length);
        u32 found = 0;
        for (i32 i = 0; i < count; ++i) {
            if (i == primary || windows[i].score < scoring.min_score) continue;
            if (windows[i].alternate != windows[primary].alternate) continue;
            bool is_close = windows[i].score * 100 >= windows[primary].score * reporting.xa_share;
            if (is_close || !span_of(windows[i], length).overlaps(span)) found |= 1u << i;
        }
        return found;
    }
    // Return the best window of a mask, and clear its bit.
    HOST_DEVICE i32 pop_best(u32& remaining) const {
        i32 next = -1;
        for (i32 i = 0; i < count; ++i)
            if (remaining >> i & 1 && (next < 0 || ranks_before(i, next))) next = i;
        remaining &= ~(1u << next);
        return next;
    }
    HOST_DEVICE void select(Entry primary, const Reporting& reporting, const Scoring& scoring) {
        entries[0] = primary;
        entry_count = 1;
        u32 remaining = primary.rank < 0 ? 0 : eligible(primary.rank, reporting, scoring);
        while (remaining) {
            Entry entry = make_entry(pop_best(remaining), reporting, scoring);
            if (entry.role != NOT_REPORTED) entries[entry_count++] = entry;
        }
        if (reporting.leftmost_primary) make_leftmost_primary(reporting, scoring);
        if (primary.rank >= 0 && !windows[primary.rank].alternate) add_alternates(reporting, scoring);
        limit_xa_hits(reporting);
    }
};

// Return the entries of a read, selected from its windows.
HOST_DEVICE Selection select(const Queries& queries, i64 record, const WindowTable& windows,
        const PlacementTable& placements, const Reporting& reporting, i32 bases_per_difference,
        const Scoring& scoring) {
    i64 slot = queries.slot_of[record];
    Selection selection;
    selection.windows = windows.of(slot);
    selection.count = windows.counts[slot], selection.unexamined = windows.unexamined_prefixes[slot];
    selection.length = queries.lengths[slot], selection.flipped = queries.flags[slot] & READ_FLIPPED;
    selection.hash = queries.hashes[slot];
    selection.bases_per_difference = bases_per_difference;
    Entry primary = {
            placements.chosen[slot], PRIMARY_ALIGNMENT, 0, placements.mapqs[slot], placements.suboptimal_scores[slot]};
    selection.select(primary, reporting, scoring);
    return selection;
}

// counts[record] = the number of entries of a read (item), 0 for an absent mate.
KERNEL void count_entries(Items items, Queries queries, Scoring scoring, WindowTable windows, PlacementTable placements,
        Reporting reporting, i64* counts OF(items), i32 bases_per_difference) {
    FOR_EACH(record, items) {
        counts[record] = 0;
        if (queries.flags[queries.slot_of[record]] & READ_ABSENT) continue;
        Selection selection = select(queries, record, windows, placements, reporting, bases_per_difference, scoring);
        i64 count = 0;
        for (i32 i = 0; i < selection.entry_count; ++i) count += selection.entries[i].role != NOT_REPORTED;
        counts[record] = count;
    }
}

// Write the entries of each read (item) to `plan`, whose offsets reserve at least those counted by count_entries.
KERNEL void list_entries(Items items, Queries queries, Scoring scoring, WindowTable windows, PlacementTable placements,
        Reporting reporting, RecordPlan plan, i32 bases_per_difference) {
    FOR_EACH(record, items) {
        if (queries.flags[queries.slot_of[record]] & READ_ABSENT) continue;
        Selection selection = select(queries, record, windows, placements, reporting, bases_per_difference, scoring);
        i64 slot = queries.slot_of[record], next = plan.offsets[record], indices[MAX_ENTRIES], number = next;
        for (i32 i = 0; i < selection.entry_count; ++i)
            indices[i] = selection.entries[i].role == NOT_REPORTED ? -1 : number++;
        for (i32 i = 0; i < selection.entry_count; ++i) {
            const Entry& entry = selection.entries[i];
            if (entry.role == NOT_REPORTED) continue;
            const Window* window = entry.rank < 0 ? nullptr : selection.windows + entry.rank;
            i64 owner = indices[entry.owner];
            bool paired = entry.role == PRIMARY_ALIGNMENT && placements.properly_paired[slot];
            plan.set_entry(next++, queries, slot, window, slot * MAX_WINDOWS + entry.rank, entry.role, owner,
                    entry.mapq, entry.suboptimal_score, paired ? scoring.paired_min_score : scoring.min_score, scoring);
        }
    }
}

// An item is a read. If it has a single entry, skip its traceback: the only part of a read is always valid.
KERNEL void skip_single_entries(Items items, Queries queries, RecordPlan plan) {
    FOR_EACH(record, items)
        if (plan.offsets[record + 1] - plan.offsets[record] == 1) plan.bands[plan.offsets[record]] = NO_BAND;
}

// Write the sort keys of each reported placement (item). strands: read << 1 | orientation; diagonals: plus `shift`.
KERNEL void key_secondaries(Items items, Queries queries, const SecondaryPlacement* placements OF(any),
        const i32* reported OF(items), u64* strands OF(items), u64* diagonals OF(items), i32 shift) {
    FOR_EACH(item, items) {
        const SecondaryPlacement& placement = placements[reported[item]];
        strands[item] = (u64)((i64)queries.order[placement.slot] << 1 | placement.orientation);
        diagonals[item] = (u64)(placement.diagonal + shift);
    }
}

// Secondary placements to report, sorted by read, orientation and diagonal.
struct ReportedPlacements {
    const SecondaryPlacement* placements OF(any);
    const i32* indices OF(count);  // indices into `placements`
    const u32* order OF(count);    // sorted order: indices into `indices`
    i64 count;
    HOST_DEVICE const SecondaryPlacement& operator[](i64 i) const { return placements[indices[order[i]]]; }
    // Return how many placements belong to reads before this one.
    HOST_DEVICE i64 before(const Queries& queries, i64 record) const {
        return partition_point(0, count, [&](i64 i) { return queries.order[(*this)[i].slot] < record; });
    }
};

// Compute where the entries of each read start with its secondary placements. The last item is the end of all reads.
// own_offsets: starts without them.
KERNEL void move_entries(Items items, Queries queries, ReportedPlacements reported, const i64* own_offsets OF(items),
        i64* offsets OF(items)) {
    FOR_EACH(record, items) offsets[record] = own_offsets[record] + reported.before(queries, record);
}

// An item is a placement in sorted order: add its entry after the read's own. own_offsets: offsets without placements.
KERNEL void add_secondaries(Items items, Queries queries, Scoring scoring, const Window* windows OF(any),
        ReportedPlacements reported, const i64* own_offsets OF(any), RecordPlan plan) {
    FOR_EACH(item, items) {
        const SecondaryPlacement& placement = reported[item];
        i64 record = queries.order[placement.slot], before = plan.offsets[record] - own_offsets[record];
        plan.set_entry(own_offsets[record + 1] + item, queries, placement.slot, windows + placement.row, placement.row,
                SECONDARY_ALIGNMENT, placement.owner + before, 0, 0, scoring.min_score, scoring);
    }
}
