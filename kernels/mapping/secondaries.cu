// Secondary alignments: all windows of a read that reach the least score, beside those of its parts.
//
// The diagonals of a batch are ordered by slot, orientation and place, so that those which may make a window are
// neighbours. A diagonal is a window's own, a head, unless a better head is near.
#include "mapping/window_builder.cuh"
#include "mapping/record_plan.cuh"

const i64 OPEN = -1;  // not yet known to be a head or taken by one

// All diagonals that seeds of the reads name, ordered by slot, orientation and place.
struct CandidateDiagonals {
    const Diagonal* rows OF(diagonal_count);
    const i32* slots OF(diagonal_count);
    i64 diagonal_count;
};

struct Candidates {
    const CandidateDiagonals& found;
    const i32* lengths;
    const Reference& reference;
    const Scoring& scoring;

    HOST_DEVICE bool within(i64 item, i64 other, i64 reach) const {
        const Diagonal* diagonals = found.rows;
        if (other < 0 || other >= found.diagonal_count || found.slots[other] != found.slots[item]) return false;
        i64 offset = diagonals[other].diagonal - diagonals[item].diagonal;
        return diagonals[other].orientation == diagonals[item].orientation && offset <= reach && -offset <= reach;
    }
    HOST_DEVICE WindowBuilder builder(i64 head) const {
        return builder_of(found.rows[head], lengths[found.slots[head]], scoring);
    }
    // The head of an item, OPEN as long as a better diagonal that may be it is open itself.
    HOST_DEVICE i64 head_of(i64 item, const i64* heads) const {
        const Diagonal* diagonals = found.rows;
        i64 head = item;
        for (i64 step = -1; step <= 1; step += 2)
            for (i64 other = item + step; within(item, other, SPREAD); other += step) {
                if (heads[other] != OPEN && heads[other] != other) continue;
                if (!is_better(diagonals[other], diagonals[head])) continue;
                if (!builder(other).accepts(diagonals[item], reference, scoring)) continue;
                if (heads[other] == OPEN) return OPEN;
                head = other;
            }
        return head;
    }
    // Whether a better diagonal is where a wide band would lead to: that one's alignment, not another place.
    HOST_DEVICE bool is_shaded(i64 item) const {
        for (i64 step = -1; step <= 1; step += 2)
            for (i64 other = item + step; within(item, other, LONG_SPREAD); other += step)
                if (is_better(found.rows[other], found.rows[item])) return true;
        return false;
    }
    // The head with the diagonals to which a gap pays, the best first. They may be heads too: where the alignment does not
    // lead there, it is a place, and else that is seen by the alignment's end.
    HOST_DEVICE WindowBuilder repeat_mate(i64 head) const {
        const Diagonal* diagonals = found.rows;
        WindowBuilder result = builder(head);
        if (is_shaded(head)) return result;
        for (i64 last = head, next = head; next >= 0; last = next) {
            next = -1;
            for (i64 step = -1; step <= 1; step += 2)
                for (i64 other = head + step; within(head, other, LONG_SPREAD); other += step)
                    if (is_better(diagonals[last], diagonals[other]) &&
                        (next < 0 || is_better(diagonals[other], diagonals[next])))
                        next = other;
            if (next >= 0 && result.accepts(diagonals[next], reference, scoring)) result.add(diagonals[next], scoring);
        }
        return result;
    }
};

// An item is a diagonal. heads: as far as they are known; next_heads: as far as these decide them; those still open are
// counted. In the end they are what a walk over all diagonals from the best on would find.
KERNEL void choose_heads(Items items, Queries queries, Reference reference, Scoring scoring, CandidateDiagonals found,
                         const i64* heads OF(items), i64* next_heads OF(items), u64* open OF(1)) {
    Candidates candidates = {found, queries.lengths, reference, scoring};
    FOR_EACH(item, items) {
        i64 head = heads[item] == OPEN ? candidates.head_of(item, heads) : heads[item];
        if (head == OPEN) atomic_add(open, 1);
        next_heads[item] = head;
    }
}

// The windows of a read's parts, of those that proved true: what other places are of, and which owns them.
struct Parts {
    const RecordPlan& plan;
    const Window* windows;
    i64 record;

    HOST_DEVICE bool is_part(i64 entry) const {
        return plan.roles[entry] <= SUPPLEMENTARY_ALIGNMENT && plan.windows[entry] >= 0;
    }
    HOST_DEVICE bool hold(const Window& window) const {
        for (i64 entry = plan.offsets[record]; entry < plan.offsets[record + 1]; ++entry)
            if (is_part(entry) && is_near(window, windows[plan.windows[entry]])) return true;
        return false;
    }
    // The first part of which the window is another place; else the primary one.
    HOST_DEVICE i64 owner(const Window& window, i32 length) const {
        Span span = span_of(window, length);
        for (i64 entry = plan.offsets[record]; entry < plan.offsets[record + 1]; ++entry)
            if (is_part(entry) && span.overlaps(span_of(windows[plan.windows[entry]], length))) return entry;
        return plan.offsets[record];
    }
};

// Of two segments that a gap joins to an alignment of min_score one has half of what both score.
HOST_DEVICE bool is_promising(const WindowBuilder& builder, const Scoring& scoring) {
    return 2 * builder.score_bound >= scoring.min_score + scoring.least_gap(1);
}

// An item is a diagonal: 1 where it is the head of a window that is none of the read's parts, else 0.
KERNEL void count_windows(Items items, Queries queries, Reference reference, Scoring scoring, CandidateDiagonals found,
                          RecordPlan plan, const Window* windows OF(any), const i64* heads OF(items),
                          i64* counts OF(items)) {
    Candidates candidates = {found, queries.lengths, reference, scoring};
    FOR_EACH(item, items) {
        counts[item] = 0;
        if (heads[item] != item) continue;
        WindowBuilder builder = candidates.repeat_mate(item);
        Parts parts = {plan, windows, queries.order[found.slots[item]]};
        counts[item] = is_promising(builder, scoring) && !parts.hold(builder.window);
    }
}

// ends: the inclusive prefix sum of what count_windows gave. kinds: 1 << the BandKind that a window is to be aligned in.
KERNEL void list_windows(Items items, Queries queries, Reference reference, Scoring scoring, CandidateDiagonals found,
                         const i64* ends OF(items), Window* windows OF(windows), i32* slots OF(windows),
                         u8* kinds OF(windows)) {
    Candidates candidates = {found, queries.lengths, reference, scoring};
    FOR_EACH(item, items) {
        i64 place = item ? ends[item - 1] : 0;
        if (ends[item] == place) continue;
        Window window = candidates.repeat_mate(item).window;
        i32 slot = found.slots[item];
        i32 kind = window.band ? band_kind(queries.lengths[slot], window.high - window.low) : NO_BAND;
        kinds[place] = (u8)(1 << kind);
        window.band = (i16)-kind;
        windows[place] = window;
        slots[place] = slot;
    }
}

// The windows that were found of all reads, in the order of their diagonals, behind the kept ones of the slots.
struct WindowList {
    const Window* rows OF(kept_rows + found_count);
    const i32* kept_counts OF(reads);
    const i32* found_slots OF(found_count);
    i64 kept_rows, found_count;

    HOST_DEVICE i64 slot(i64 row) const { return row < kept_rows ? row / MAX_WINDOWS : found_slots[row - kept_rows]; }
    HOST_DEVICE bool exists(i64 row) const {
        return row >= kept_rows || row % MAX_WINDOWS < kept_counts[row / MAX_WINDOWS];
    }
    // Whether a window that scores as much as a kept one was found beside it.
    HOST_DEVICE bool is_found(const Window& kept, i64 slot) const {
        i64 low = 0, high = found_count;
        while (low < high) {
            i64 middle = (low + high) >> 1;
            const Window& other = rows[kept_rows + middle];
            bool before = found_slots[middle] != slot             ? found_slots[middle] < slot
                          : other.orientation != kept.orientation ? other.orientation < kept.orientation
                                                                  : other.diagonal < kept.diagonal - SPREAD;
            if (before) low = middle + 1;
            else high = middle;
        }
        for (; low < found_count && found_slots[low] == slot && is_near(rows[kept_rows + low], kept); ++low)
            if (rows[kept_rows + low].score >= kept.score) return true;
        return false;
    }
};

// An item is the row of a window: 1 where it is another place of a part, else 0. Kept windows are reported where no search
// found them again, with a score that is sure to be their best alignment's.
KERNEL void count_placements(Items items, Queries queries, Scoring scoring, RecordPlan plan, WindowList windows,
                             i64* counts OF(items)) {
    FOR_EACH(row, items) {
        const Window& window = windows.rows[row];
        counts[row] = 0;
        if (!windows.exists(row) || window.alternate || window.score < scoring.min_score) continue;
        i64 slot = windows.slot(row), record = queries.order[slot];
        if (plan.windows[plan.offsets[record]] < 0) continue;
        Parts parts = {plan, windows.rows, record};
        counts[row] = row >= windows.kept_rows || (!parts.hold(window) && !windows.is_found(window, slot));
    }
}

// ends: the inclusive prefix sum of what count_placements gave.
KERNEL void list_places(Items items, Queries queries, RecordPlan plan, WindowList windows, const i64* ends OF(items),
                        SecondaryPlacement* places OF(any)) {
    FOR_EACH(row, items) {
        i64 place = row ? ends[row - 1] : 0;
        if (ends[row] == place) continue;
        const Window& window = windows.rows[row];
        i64 slot = windows.slot(row);
        i64 part = Parts{plan, windows.rows, queries.order[slot]}.owner(window, queries.lengths[slot]);
        u64 tie = tie_break(queries.hashes[slot], window.diagonal);
        places[place] =
            SecondaryPlacement{row, window.diagonal, tie, (i32)slot, (i32)part, window.score, window.orientation};
    }
}

// An item is a place. What decides which of a part's places are better: the part and the score that is lost, a tie's
// number, the strand.
KERNEL void key_placements(Items items, const SecondaryPlacement* places OF(items), u64* losses OF(items),
                           u64* ties OF(items), u64* strands OF(items)) {
    FOR_EACH(item, items) {
        const SecondaryPlacement& place = places[item];
        losses[item] = (u64)place.owner << 32 | (u32)~place.score;
        ties[item] = place.tie;
        strands[item] = (u64)place.orientation;
    }
}

// An item is a place of the order of those keys; marks: of the places themselves, 1 for the first `most` of each part.
KERNEL void mark_best(Items items, const SecondaryPlacement* places OF(items), const u32* order OF(items),
                      u8* marks OF(items), i32 most) {
    FOR_EACH(item, items)
        marks[order[item]] = item < most || places[order[item - most]].owner != places[order[item]].owner;
}
