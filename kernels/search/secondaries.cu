// Places: all windows of a read that reach the least score, beside those of its parts.
//
// The diagonals of a batch are ordered by slot, orientation and place, so that those which may make a window are
// neighbours. A diagonal is a window's own, a head, unless a better head is near.
#include "search/window_builder.cuh"
#include "search/record_plan.cuh"

const i64 OPEN = -1;  // not yet known to be a head or taken by one

struct Crowd {
    const Diagonal* diagonals;
    const i32* slots;
    i64 count;
    const i32* lengths;
    const Reference& reference;
    const Scoring& scoring;

    HOST_DEVICE bool within(i64 item, i64 other, i64 reach) const {
        if (other < 0 || other >= count || slots[other] != slots[item]) return false;
        i64 offset = diagonals[other].diagonal - diagonals[item].diagonal;
        return diagonals[other].orientation == diagonals[item].orientation && offset <= reach && -offset <= reach;
    }
    HOST_DEVICE Draft draft(i64 head) const { return draft_of(diagonals[head], lengths[slots[head]], scoring); }
    // The head of an item, OPEN as long as a better diagonal that may be it is open itself.
    HOST_DEVICE i64 head_of(i64 item, const i64* heads) const {
        i64 head = item;
        for (i64 step = -1; step <= 1; step += 2)
            for (i64 other = item + step; within(item, other, SPREAD); other += step) {
                if (heads[other] != OPEN && heads[other] != other) continue;
                if (!better(diagonals[other], diagonals[head])) continue;
                if (!draft(other).takes(diagonals[item], reference, scoring)) continue;
                if (heads[other] == OPEN) return OPEN;
                head = other;
            }
        return head;
    }
    // Whether a better diagonal is where a wide band would lead to: that one's alignment, not another place.
    HOST_DEVICE bool is_shaded(i64 item) const {
        for (i64 step = -1; step <= 1; step += 2)
            for (i64 other = item + step; within(item, other, LONG_SPREAD); other += step)
                if (better(diagonals[other], diagonals[item])) return true;
        return false;
    }
    // The head with the diagonals to which a gap pays, the best first. They may be heads too: where the alignment does not
    // lead there, it is a place, and else that is seen by the alignment's end.
    HOST_DEVICE Draft joined(i64 head) const {
        Draft result = draft(head);
        if (is_shaded(head)) return result;
        for (i64 last = head, next = head; next >= 0; last = next) {
            next = -1;
            for (i64 step = -1; step <= 1; step += 2)
                for (i64 other = head + step; within(head, other, LONG_SPREAD); other += step)
                    if (better(diagonals[last], diagonals[other]) &&
                        (next < 0 || better(diagonals[other], diagonals[next])))
                        next = other;
            if (next >= 0 && result.takes(diagonals[next], reference, scoring)) result.add(diagonals[next], scoring);
        }
        return result;
    }
};

#define CROWD_ARGUMENTS \
    const Diagonal *diagonals, const i32 *diagonal_slots, const i32 *lengths, REFERENCE_ARGUMENTS, i64 diagonal_count
#define CROWD \
    Crowd { diagonals, diagonal_slots, diagonal_count, lengths, reference, scoring }

// An item is a diagonal. heads: as far as they are known; next_heads: as far as these decide them; those still open are
// counted. In the end they are what a walk over all diagonals from the best on would find.
KERNEL void choose_heads(i64 begin, i64 end, CROWD_ARGUMENTS, const i64* heads, i64* next_heads, u64* open,
                         SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Scoring scoring = SCORING;
    Crowd crowd = CROWD;
    FOR_EACH(item, begin, end) {
        i64 head = heads[item] == OPEN ? crowd.head_of(item, heads) : heads[item];
        if (head == OPEN) atomic_add(open, 1);
        next_heads[item] = head;
    }
}

// The windows of a read's parts, of those that proved true: what other places are told of, and which owns them.
struct Parts {
    Lines lines;
    const Window* windows;
    i64 record;

    HOST_DEVICE bool is_part(i64 line) const { return lines.roles[line] <= PIECE && lines.windows[line] >= 0; }
    HOST_DEVICE bool hold(const Window& window) const {
        for (i64 line = lines.offsets[record]; line < lines.offsets[record + 1]; ++line)
            if (is_part(line) && beside(window, windows[lines.windows[line]])) return true;
        return false;
    }
    // The first part of which the window is another place; else the primary one.
    HOST_DEVICE i64 owner(const Window& window, i32 length) const {
        Span span = span_of(window, length);
        for (i64 line = lines.offsets[record]; line < lines.offsets[record + 1]; ++line)
            if (is_part(line) && span.rivals(span_of(windows[lines.windows[line]], length))) return line;
        return lines.offsets[record];
    }
};

// Of two segments that a gap joins to an alignment of min_score one has half of what both score.
HOST_DEVICE bool is_promising(const Draft& draft, i32 min_score, const Scoring& scoring) {
    return 2 * draft.promise >= min_score + scoring.gap(1);
}

// An item is a diagonal: 1 where it is the head of a window that is none of the read's parts, else 0.
KERNEL void count_windows(i64 begin, i64 end, CROWD_ARGUMENTS, const i64* heads, const i32* order, LINE_ARGUMENTS,
                          const Window* windows, i64* told, i32 min_score, SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Scoring scoring = SCORING;
    Crowd crowd = CROWD;
    FOR_EACH(item, begin, end) {
        told[item] = 0;
        if (heads[item] != item) continue;
        Draft draft = crowd.joined(item);
        Parts parts = {LINES, windows, order[diagonal_slots[item]]};
        told[item] = is_promising(draft, min_score, scoring) && !parts.hold(draft.window);
    }
}

// told_ends: the inclusive prefix sum of what count_windows gave. bands: the kinds that the windows are to be aligned in.
KERNEL void list_windows(i64 begin, i64 end, CROWD_ARGUMENTS, const i64* told_ends, Window* found, i32* slots,
                         u8* bands, SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Scoring scoring = SCORING;
    Crowd crowd = CROWD;
    FOR_EACH(item, begin, end) {
        i64 place = item ? told_ends[item - 1] : 0;
        if (told_ends[item] == place) continue;
        Window window = crowd.joined(item).window;
        i32 slot = diagonal_slots[item];
        bands[place] = (u8)(window.band ? band_kind(lengths[slot], window.high - window.low) : NO_BAND);
        window.band = -(i16)bands[place];
        found[place] = window;
        slots[place] = slot;
    }
}

// The windows that were found of all reads, in the order of their diagonals, behind the kept ones of the slots.
struct Candidates {
    const Window* windows;
    const i32* kept_counts;
    const i32* found_slots;
    i64 kept_rows, found_count, most_windows;

    HOST_DEVICE i64 slot(i64 row) const { return row < kept_rows ? row / most_windows : found_slots[row - kept_rows]; }
    HOST_DEVICE bool exists(i64 row) const {
        return row >= kept_rows || row % most_windows < kept_counts[row / most_windows];
    }
    // Whether a window that scores as much as a kept one was found beside it.
    HOST_DEVICE bool is_found(const Window& kept, i64 slot) const {
        i64 low = 0, high = found_count;
        while (low < high) {
            i64 middle = (low + high) >> 1;
            const Window& other = windows[kept_rows + middle];
            bool before = found_slots[middle] != slot             ? found_slots[middle] < slot
                          : other.orientation != kept.orientation ? other.orientation < kept.orientation
                                                                  : other.diagonal < kept.diagonal - SPREAD;
            if (before) low = middle + 1;
            else high = middle;
        }
        for (; low < found_count && found_slots[low] == slot && beside(windows[kept_rows + low], kept); ++low)
            if (windows[kept_rows + low].score >= kept.score) return true;
        return false;
    }
};

#define CANDIDATE_ARGUMENTS                                                                              \
    const i32 *lengths, const i32 *order, LINE_ARGUMENTS, const Window *windows, const i32 *kept_counts, \
        const i32 *found_slots, i64 kept_rows, i64 found_count, i64 most_windows
#define CANDIDATES \
    Candidates { windows, kept_counts, found_slots, kept_rows, found_count, most_windows }

// An item is the row of a window: 1 where it is another place of a part, else 0. Kept windows are told where no search found
// them again, with a score that is sure to be their best alignment's.
KERNEL void count_places(i64 begin, i64 end, CANDIDATE_ARGUMENTS, i64* told, i32 min_score) {
    Candidates candidates = CANDIDATES;
    FOR_EACH(row, begin, end) {
        told[row] = 0;
        if (!candidates.exists(row) || windows[row].score < min_score) continue;
        i64 slot = candidates.slot(row), record = order[slot];
        if (line_windows[line_offsets[record]] < 0) continue;
        Parts parts = {LINES, windows, record};
        told[row] = row >= kept_rows || (!parts.hold(windows[row]) && !candidates.is_found(windows[row], slot));
    }
}

// told_ends: the inclusive prefix sum of what count_places gave.
KERNEL void list_places(i64 begin, i64 end, CANDIDATE_ARGUMENTS, const u64* hashes, const i64* told_ends,
                        Place* places) {
    Candidates candidates = CANDIDATES;
    FOR_EACH(row, begin, end) {
        i64 place = row ? told_ends[row - 1] : 0;
        if (told_ends[row] == place) continue;
        const Window& window = windows[row];
        i64 slot = candidates.slot(row);
        i64 part = Parts{LINES, windows, order[slot]}.owner(window, lengths[slot]);
        places[place] =
            Place{row,          window.diagonal,   tie_of(hashes[slot], window.diagonal), (i32)slot, (i32)part,
                  window.score, window.orientation};
    }
}
