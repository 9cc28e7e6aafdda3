// Which of a read's windows are reported, and as what.
#include "mapping/record_plan.cuh"

struct Entry {
    i32 rank, role, owner, mapq, second;  // owner: an entry of the same read
};

// What a user wants reported.
struct Reporting {
    i32 xa_limit;           // a part with more other places reports none in XA
    i32 alternate_limit;    // the same where one of them is on an ALT contig
    i32 xa_share;           // percent of the part's score that such a place has
    bool leftmost_primary;  // of a split read the part that begins first in the read is the primary one
};

const i32 MAX_ENTRIES = MAX_WINDOWS + 4;  // of a read: parts that are other places too, of an ALT contig's

struct Selection {
    const Window* windows;
    i32 count, length, unexamined, bases_per_difference;
    u64 hash;
    bool flipped;
    Entry entries[MAX_ENTRIES];
    i32 entry_count;

    HOST_DEVICE bool ahead(i32 i, i32 j) const {
        const Window &a = windows[i], &b = windows[j];
        if (a.score != b.score) return a.score > b.score;
        u64 tie_a = tie_break(hash, a.diagonal), tie_b = tie_break(hash, b.diagonal);
        return tie_a != tie_b ? tie_a < tie_b : a.orientation < b.orientation;
    }
    // Its rivals are all places of a part on an ALT contig, of others those which are on none.
    HOST_DEVICE Entry supplementary(i32 rank, const Scoring& scoring) const {
        const Window& window = windows[rank];
        i32 bases = span_of(window, length).length(), second = 0;
        i32 variant =
            variant_phred_of_loss(bases, scoring.perfect(bases) - window.score, bases_per_difference, scoring);
        Rivals rivals = {0};
        for (i32 i = 0; i < count; ++i) {
            if (i == rank || windows[i].alternate > window.alternate || !is_rival(windows[i], window, length)) continue;
            second = maximum(second, windows[i].score);
            rivals.add(maximum(points_to_phred(window.score - windows[i].score, variant, scoring), 0));
        }
        rivals.add(unexamined_deficit(unexamined, window.score, variant, scoring));
        i32 most = window.alternate ? 60 : entries[0].mapq;
        return Entry{rank, SUPPLEMENTARY_ALIGNMENT, entry_count, minimum(rivals.mapping_quality(), most), second};
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
    // The entry of another part, or of a place for XA; its role is NOT_REPORTED where it is neither.
    HOST_DEVICE Entry other(i32 rank, const Reporting& reporting, const Scoring& scoring) const {
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
    // The part whose place a window on an ALT contig is another one of; entry_count where it is better than all: one on
    // another ALT contig, or one that scores as much at least.
    HOST_DEVICE i32 part_beyond(const Window& window) const {
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
    // The place of the last entry, on an ALT contig, is a better one of these parts: they and their XA hits become its own.
    HOST_DEVICE void take_over(const Reporting& reporting) {
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
    // The places on ALT contigs of a read that belongs on none. What scores more there than anywhere else is a record too.
    HOST_DEVICE void add_alternates(const Reporting& reporting, const Scoring& scoring) {
        u32 left = 0;
        for (i32 i = 0; i < count; ++i)
            if (windows[i].alternate && windows[i].score >= scoring.min_score) left |= 1u << i;
        while (left && entry_count < MAX_ENTRIES) {
            i32 next = take_next(left), owner = part_beyond(windows[next]);
            if (is_reported(windows[next])) continue;
            if (owner == entry_count) {
                Entry winner = supplementary(next, scoring);
                entries[entry_count++] = winner;
                take_over(reporting);
            } else if (is_xa_hit(windows[next], windows[entries[owner].rank], reporting))
                entries[entry_count++] = Entry{next, XA_HIT, owner, 0, 0};
        }
    }
    // Drops the XA hits of those parts that have too many.
    HOST_DEVICE void limit_xa_hits(const Reporting& reporting) {
        for (i32 part = 0; part < entry_count; ++part) {
            i32 found = 0, most = reporting.xa_limit;
            for (i32 i = 0; i < entry_count; ++i) {
                if (entries[i].role != XA_HIT || entries[i].owner != part) continue;
                ++found;
                if (windows[entries[i].rank].alternate) most = reporting.alternate_limit;
            }
            for (i32 i = 0; found > most && i < entry_count; ++i)
                if (entries[i].role == XA_HIT && entries[i].owner == part) entries[i].role = NOT_REPORTED;
        }
    }
    HOST_DEVICE bool is_sure(const Window& window, const Scoring& scoring) const {
        return is_alignment(window, length, (window.orientation != 0) != flipped, scoring);
    }
    HOST_DEVICE i32 read_begin(const Entry& entry) const {
        Span span = span_of(windows[entry.rank], length);
        return flipped ? length - span.end : span.begin;
    }
    // A part that may prove to be none never is it, as without a primary alignment the whole read has no place.
    HOST_DEVICE void make_leftmost_primary(const Reporting& reporting, const Scoring& scoring) {
        i32 first = 0;
        for (i32 i = 1; i < entry_count; ++i) {
            if (entries[i].role != SUPPLEMENTARY_ALIGNMENT || !is_sure(windows[entries[i].rank], scoring)) continue;
            if (read_begin(entries[i]) < read_begin(entries[first])) first = i;
        }
        if (first == 0) return;
        Entry held = entries[0];
        entries[0] = Entry{entries[first].rank, PRIMARY_ALIGNMENT, 0, entries[first].mapq, entries[first].second};
        entries[first] = Entry{held.rank, SUPPLEMENTARY_ALIGNMENT, first, held.mapq, held.second};
        for (i32 i = 1; i < entry_count; ++i) {
            i32 owner = entries[i].owner;
            if (entries[i].role > SUPPLEMENTARY_ALIGNMENT)
                entries[i].owner = owner == 0 ? first : owner == first ? 0 : owner;
        }
    }
    // A bit for each window beside the primary one that may be reported.
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
    // Of the windows whose bits are set the one that scores most; its bit is cleared.
    HOST_DEVICE i32 take_next(u32& left) const {
        i32 next = -1;
        for (i32 i = 0; i < count; ++i)
            if (left >> i & 1 && (next < 0 || ahead(i, next))) next = i;
        left &= ~(1u << next);
        return next;
    }
    HOST_DEVICE void select(Entry primary, const Reporting& reporting, const Scoring& scoring) {
        entries[0] = primary;
        entry_count = 1;
        u32 left = primary.rank < 0 ? 0 : eligible(primary.rank, reporting, scoring);
        while (left) {
            Entry entry = other(take_next(left), reporting, scoring);
            if (entry.role != NOT_REPORTED) entries[entry_count++] = entry;
        }
        if (reporting.leftmost_primary) make_leftmost_primary(reporting, scoring);
        if (primary.rank >= 0 && !windows[primary.rank].alternate) add_alternates(reporting, scoring);
        limit_xa_hits(reporting);
    }
};

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
    Entry primary = {placements.chosen[slot], PRIMARY_ALIGNMENT, 0, placements.mapqs[slot],
                     placements.suboptimal_scores[slot]};
    selection.select(primary, reporting, scoring);
    return selection;
}

// An item is a record: how many entries it has, none where it is absent.
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

// plan.offsets: what count_entries counted is the least that a record has.
KERNEL void list_entries(Items items, Queries queries, Scoring scoring, WindowTable windows, PlacementTable placements,
                         Reporting reporting, RecordPlan plan, i32 bases_per_difference) {
    FOR_EACH(record, items) {
        if (queries.flags[queries.slot_of[record]] & READ_ABSENT) continue;
        Selection selection = select(queries, record, windows, placements, reporting, bases_per_difference, scoring);
        i64 slot = queries.slot_of[record], next = plan.offsets[record], numbers[MAX_ENTRIES], number = next;
        for (i32 i = 0; i < selection.entry_count; ++i)
            numbers[i] = selection.entries[i].role == NOT_REPORTED ? -1 : number++;
        for (i32 i = 0; i < selection.entry_count; ++i) {
            const Entry& entry = selection.entries[i];
            if (entry.role == NOT_REPORTED) continue;
            const Window* window = entry.rank < 0 ? nullptr : selection.windows + entry.rank;
            i64 owner = numbers[entry.owner];
            bool joint = entry.role == PRIMARY_ALIGNMENT && placements.properly_paired[slot];
            plan.put(next++, queries, slot, window, slot * MAX_WINDOWS + entry.rank, entry.role, owner, entry.mapq,
                     entry.second, joint ? scoring.paired_min_score : scoring.min_score, scoring);
        }
    }
}

// An item is a record. Where it has but one entry, that is not traced: the only part of a read always proves true.
KERNEL void skip_single_entries(Items items, Queries queries, RecordPlan plan) {
    FOR_EACH(record, items)
        if (plan.offsets[record + 1] - plan.offsets[record] == 1) plan.bands[plan.offsets[record]] = NO_BAND;
}

// An item is one of the places that are reported: what decides where among these it is. places: the diagonals, counted from
// that on which `shift` bases in front of the reference begin.
KERNEL void key_secondaries(Items items, Queries queries, const SecondaryPlacement* places OF(any),
                            const i32* reported OF(items), u64* strands OF(items), u64* diagonals OF(items),
                            i32 shift) {
    FOR_EACH(item, items) {
        const SecondaryPlacement& place = places[reported[item]];
        strands[item] = (u64)((i64)queries.order[place.slot] << 1 | place.orientation);
        diagonals[item] = (u64)(place.diagonal + shift);
    }
}

// The places that are reported, by record.
struct ReportedPlacements {
    const SecondaryPlacement* places OF(any);
    const i32* numbers OF(count);  // of these places
    const u32* order OF(count);    // of the numbers
    i64 count;

    HOST_DEVICE const SecondaryPlacement& operator[](i64 i) const { return places[numbers[order[i]]]; }
    // Those of the records before one.
    HOST_DEVICE i64 before(const Queries& queries, i64 record) const {
        i64 low = 0, high = count;
        while (low < high) {
            i64 middle = (low + high) >> 1;
            if (queries.order[(*this)[middle].slot] < record) low = middle + 1;
            else high = middle;
        }
        return low;
    }
};

// An item is a record, or what is behind the last one: where its entries begin when those of places are among them.
KERNEL void move_entries(Items items, Queries queries, ReportedPlacements reported, const i64* own_offsets OF(items),
                         i64* offsets OF(items)) {
    FOR_EACH(record, items) offsets[record] = own_offsets[record] + reported.before(queries, record);
}

// An item is a place of the order: an entry behind its read's own ones. own_offsets: where these begin without places.
KERNEL void add_secondaries(Items items, Queries queries, Scoring scoring, const Window* windows OF(any),
                            ReportedPlacements reported, const i64* own_offsets OF(any), RecordPlan plan) {
    FOR_EACH(item, items) {
        const SecondaryPlacement& place = reported[item];
        i64 record = queries.order[place.slot], before = plan.offsets[record] - own_offsets[record];
        plan.put(own_offsets[record + 1] + item, queries, place.slot, windows + place.row, place.row,
                 SECONDARY_ALIGNMENT, place.owner + before, 0, 0, scoring.min_score, scoring);
    }
}
