// Secondary alignments: all windows of a read that reach the minimum score, besides the windows of its parts.
//
// The diagonals of a batch are sorted by slot, orientation and position, so that diagonals of one window are
// neighbours. A diagonal is the head of a window unless it belongs to the window of a better head nearby.
#include "common/binary_search.cuh"
#include "mapping/window_builder.cuh"
#include "mapping/record_plan.cuh"

const i64 OPEN = -1;  // neither known to be a head nor to belong to one
// The diagonals of all seed matches of the reads, sorted by slot, orientation and position.
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
    HOST_DEVICE bool is_within(i64 item, i64 other, i64 reach) const {
        const Diagonal* diagonals = found.rows;
        if (other < 0 || other >= found.diagonal_count || found.slots[other] != found.slots[item]) return false;
        i64 offset = diagonals[other].diagonal - diagonals[item].diagonal;
        return diagonals[other].orientation == diagonals[item].orientation && offset <= reach && -offset <= reach;
    }
    HOST_DEVICE WindowBuilder builder(i64 head) const {
        return builder_of(found.rows[head], lengths[found.slots[head]], scoring);
    }
    // Return the head of a diagonal, or OPEN while a better diagonal nearby is undecided.
    HOST_DEVICE i64 head_of(i64 item, const i64* heads) const {
        const Diagonal* diagonals = found.rows;
        i64 head = item;
        for (i64 step = -1; step <= 1; step += 2)
            for (i64 other = item + step; is_within(item, other, SPREAD); other += step) {
                if (heads[other] != OPEN && heads[other] != other) continue;
                if (!is_better(diagonals[other], diagonals[head])) continue;
                if (!builder(other).accepts(diagonals[item], reference, scoring)) continue;
                if (heads[other] == OPEN) return OPEN;
                head = other;
            }
        return head;
    }
    // Return true if a better diagonal lies within a wide band: the band would find the alignment of that diagonal.
    HOST_DEVICE bool has_better_nearby(i64 item) const {
        for (i64 step = -1; step <= 1; step += 2)
            for (i64 other = item + step; is_within(item, other, LONG_SPREAD); other += step)
                if (is_better(found.rows[other], found.rows[item])) return true;
        return false;
    }
    // Return the window of a head with the diagonals that a gap may reach, best first. They may be heads too: if their
    // alignments turn out to be the same, duplicates are dropped later.
    HOST_DEVICE WindowBuilder build_window(i64 head) const {
        const Diagonal* diagonals = found.rows;
        WindowBuilder result = builder(head);
        if (has_better_nearby(head)) return result;
        for (i64 last = head, next = head; next >= 0; last = next) {
            next = -1;
            for (i64 step = -1; step <= 1; step += 2)
                for (i64 other = head + step; is_within(head, other, LONG_SPREAD); other += step)
                    if (is_better(diagonals[last], diagonals[other]) &&
                            (next < 0 || is_better(diagonals[other], diagonals[next])))
                        next = other;
            if (next >= 0 && result.accepts(diagonals[next], reference, scoring)) result.add(diagonals[next], scoring);
        }
        return result;
    }
};

// Decide the head of each diagonal (item), the best diagonal of its window, from the heads decided so far; add those
// still OPEN to `open`. After the last round, heads are as by a greedy pass over all diagonals, best first.
KERNEL void choose_heads(Items items, Queries queries, Reference reference, Scoring scoring, CandidateDiagonals found,
        const i64* heads OF(items), i64* next_heads OF(items), u64* open OF(1)) {
    Candidates candidates = {found, queries.lengths, reference, scoring};
    FOR_EACH(item, items) {
        i64 head = heads[item] == OPEN ? candidates.head_of(item, heads) : heads[item];
        if (head == OPEN) atomic_add(open, 1);
        next_heads[item] = head;
    }
}

// The windows of the valid parts of a read.
struct Parts {
    const RecordPlan& plan;
    const Window* windows;
    i64 record;
    HOST_DEVICE bool is_part(i64 entry) const {
        return plan.roles[entry] <= SUPPLEMENTARY_ALIGNMENT && plan.windows[entry] >= 0;
    }
    HOST_DEVICE bool contain(const Window& window) const {
        for (i64 entry = plan.offsets[record]; entry < plan.offsets[record + 1]; ++entry)
            if (is_part(entry) && is_near(window, windows[plan.windows[entry]])) return true;
        return false;
    }
    // Return the first part that overlaps the window in the read, or the primary entry.
    HOST_DEVICE i64 owner(const Window& window, i32 length) const {
        Span span = span_of(window, length);
        for (i64 entry = plan.offsets[record]; entry < plan.offsets[record + 1]; ++entry)
            if (is_part(entry) && span.overlaps(span_of(windows[plan.windows[entry]], length))) return entry;
        return plan.offsets[record];
    }
};

// Return true if the window may reach min_score. If a gap joins two segments, the better one has at least half the sum.
HOST_DEVICE bool is_promising(const WindowBuilder& builder, const Scoring& scoring) {
    return 2 * builder.score_bound >= scoring.min_score + scoring.min_gap_cost(1);
}
// counts[item] = 1 if a diagonal is the head of a promising window that belongs to no part of the read, else 0.
KERNEL void count_windows(Items items, Queries queries, Reference reference, Scoring scoring, CandidateDiagonals found,
        RecordPlan plan, const Window* windows OF(any), const i64* heads OF(items), i64* counts OF(items)) {
    Candidates candidates = {found, queries.lengths, reference, scoring};
    FOR_EACH(item, items) {
        counts[item] = 0;
        if (heads[item] != item) continue;
        WindowBuilder builder = candidates.build_window(item);
        Parts parts = {plan, windows, queries.order[found.slots[item]]};
        counts[item] = is_promising(builder, scoring) && !parts.contain(builder.window);
    }
}

// Write the window and slot of each head that count_windows counted (item: a diagonal). ends: inclusive prefix sum of
// the counts; kinds: 1 << BandKind of the alignment to make.
KERNEL void list_windows(Items items, Queries queries, Reference reference, Scoring scoring, CandidateDiagonals found,
        const i64* ends OF(items), Window* windows OF(windows), i32* slots OF(windows), u8* kinds OF(windows)) {
    Candidates candidates = {found, queries.lengths, reference, scoring};
    FOR_EACH(item, items) {
        i64 target = item ? ends[item - 1] : 0;
        if (ends[item] == target) continue;
        Window window = candidates.build_window(item).window;
        i32 slot = found.slots[item];
        i32 kind = window.band ? band_kind(queries.lengths[slot], window.high - window.low) : NO_BAND;
        kinds[target] = (u8)(1 << kind);
        window.band = (i16)-kind;
        windows[target] = window;
        slots[target] = slot;
    }
}

// The windows of a batch, followed by the windows found for secondary records, sorted as the diagonals are.
struct WindowList {
    const Window* rows OF(kept_rows + found_count);  // rows of the WindowTable, then the windows found
    const i32* kept_counts OF(reads);                // windows of the batch by slot
    const i32* found_slots OF(found_count);          // slot of each window found
    i64 kept_rows, found_count;
    HOST_DEVICE i64 slot(i64 row) const { return row < kept_rows ? row / MAX_WINDOWS : found_slots[row - kept_rows]; }
    HOST_DEVICE bool exists(i64 row) const {
        return row >= kept_rows || row % MAX_WINDOWS < kept_counts[row / MAX_WINDOWS];
    }
    // Return true if a found window close to a kept one scores at least the same.
    HOST_DEVICE bool is_found(const Window& kept, i64 slot) const {
        i64 low = partition_point(0, found_count, [&](i64 i) {
            const Window& other = rows[kept_rows + i];
            if (found_slots[i] != slot) return found_slots[i] < slot;
            if (other.orientation != kept.orientation) return other.orientation < kept.orientation;
            return other.diagonal < kept.diagonal - SPREAD;
        });
        for (; low < found_count && found_slots[low] == slot && is_near(rows[kept_rows + low], kept); ++low)
            if (rows[kept_rows + low].score >= kept.score) return true;
        return false;
    }
};

// counts[row] = 1 if the window of a row (item) is another placement of a part, else 0. A kept window counts only if no
// window was found in its place: only a found window is sure to have the score of its best alignment.
KERNEL void count_placements(
        Items items, Queries queries, Scoring scoring, RecordPlan plan, WindowList windows, i64* counts OF(items)) {
    FOR_EACH(row, items) {
        const Window& window = windows.rows[row];
        counts[row] = 0;
        if (!windows.exists(row) || window.alternate || window.score < scoring.min_score) continue;
        i64 slot = windows.slot(row), record = queries.order[slot];
        if (plan.windows[plan.offsets[record]] < 0) continue;
        Parts parts = {plan, windows.rows, record};
        counts[row] = row >= windows.kept_rows || (!parts.contain(window) && !windows.is_found(window, slot));
    }
}

// Write the SecondaryPlacement of each row counted by count_placements. ends: inclusive prefix sum of its counts.
KERNEL void list_placements(Items items, Queries queries, RecordPlan plan, WindowList windows,
        const i64* ends OF(items), SecondaryPlacement* placements OF(any)) {
    FOR_EACH(row, items) {
        i64 target = row ? ends[row - 1] : 0;
        if (ends[row] == target) continue;
        const Window& window = windows.rows[row];
        i64 slot = windows.slot(row);
        i64 part = Parts{plan, windows.rows, queries.order[slot]}.owner(window, queries.lengths[slot]);
        u64 tie = tie_break(queries.hashes[slot], window.diagonal);
        placements[target] =
                SecondaryPlacement{row, window.diagonal, tie, (i32)slot, (i32)part, window.score, window.orientation};
    }
}

// Write sort keys of each placement (item): losses (its part << 32 | ~score), ties (tie break) and strands.
KERNEL void key_placements(Items items, const SecondaryPlacement* placements OF(items), u64* losses OF(items),
        u64* ties OF(items), u64* strands OF(items)) {
    FOR_EACH(item, items) {
        const SecondaryPlacement& placement = placements[item];
        losses[item] = (u64)placement.owner << 32 | (u32)~placement.score;
        ties[item] = placement.tie;
        strands[item] = (u64)placement.orientation;
    }
}

// marks[placement] = 1 for the best max_count placements of each part, else 0. An item is a rank in `order`.
KERNEL void mark_best(Items items, const SecondaryPlacement* placements OF(items), const u32* order OF(items),
        u8* marks OF(items), i32 max_count) {
    FOR_EACH(item, items)
        marks[order[item]] =
                item < max_count || placements[order[item - max_count]].owner != placements[order[item]].owner;
}
