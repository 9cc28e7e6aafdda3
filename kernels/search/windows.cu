// Windows: the places where a read may belong, from its best diagonals.
#include "search/window_builder.cuh"

const i32 WORSE = 30;  // points below the best at which it does not matter what a long gap would add

// Windows from the kept diagonals, the most promising first; returns how many.
HOST_DEVICE i32 join(const Diagonal* kept, i32 kept_count, const Reference& reference, Window* windows, i32 most,
                     i32 length, const Scoring& scoring) {
    Draft drafts[KEPT];
    i32 count = 0, written = 0;
    for (i32 i = 0; i < kept_count; ++i) {
        const Diagonal& one = kept[i];
        i32 home = 0;
        while (home < count && !drafts[home].takes(one, reference, scoring)) ++home;
        if (home < count) {
            drafts[home].add(one, scoring);
            continue;
        }
        drafts[count++] = draft_of(one, length, scoring);
    }
    i32 first = 0, top = 0;
    for (i32 i = 0; i < count; ++i) top = maximum(top, drafts[i].window.score);
    for (; written < minimum(count, most); ++written) {
        i32 best = -1;
        for (i32 i = 0; i < count; ++i)
            if (drafts[i].promise >= 0 && (best < 0 || drafts[i].promise > drafts[best].promise)) best = i;
        if (written == 0) first = drafts[best].promise;
        Window window = drafts[best].window;
        // Far below the best, no gap makes up for what is missing.
        bool align = window.band && 2 * drafts[best].promise >= first;
        if (drafts[best].promise + WORSE < top) window.narrow();
        window.band = (i16)(align ? -band_kind(length, window.high - window.low) : NO_BAND);
        windows[written] = window;
        drafts[best].promise = -1;
    }
    return written;
}

// An item is a read, selected[item]; it writes windows[slot * most ...], the most promising first, counts[slot] and
// missed[slot].
KERNEL void join_diagonals(i64 begin, i64 end, const i32* lengths, const i32* selected, const Diagonal* found,
                           const i32* found_counts, const i32* found_missed, REFERENCE_ARGUMENTS, Window* windows,
                           i32* counts, i32* missed, i64 most_windows, i32 most_found, SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item];
        counts[slot] = join(found + item * KEPT, found_counts[item], reference, windows + slot * most_windows,
                            most_found, lengths[slot], SCORING);
        missed[slot] = found_missed[item];
    }
}

// Whether a window takes another one's segment beside its own. Where that promises more, the window is widened and
// aligned once more: in a repeat, the segments of other copies may have hidden the far side of a gap.
HOST_DEVICE bool take(Window& own, const Window& fresh, i32 length, const Reference& reference,
                      const Scoring& scoring) {
    Draft draft = {own, 0, length};
    Diagonal one = {fresh.diagonal, 0, Segment{fresh.score, fresh.begin, fresh.end}, fresh.orientation};
    if (!draft.takes(one, reference, scoring)) return false;
    draft.add(one, scoring);
    if (draft.promise > 0) {
        own = draft.window;
        own.band = (i16)-band_kind(length, own.high - own.low);
    }
    return true;
}

// An item is a read, selected[item], whose windows keep their ranks: those that its diagonals make are put behind them
// where none of them takes them, as far as there is room for `most` in all.
KERNEL void add_diagonals(i64 begin, i64 end, const i32* lengths, const i32* selected, const Diagonal* found,
                          const i32* found_counts, REFERENCE_ARGUMENTS, Window* windows, i32* counts, i64 most_windows,
                          i32 most, SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item];
        Window fresh[KEPT], *own = windows + slot * most_windows;
        i32 more = join(found + item * KEPT, found_counts[item], reference, fresh, KEPT, lengths[slot], SCORING);
        for (i32 i = 0; i < more; ++i) {
            i32 taker = 0, count = counts[slot];
            while (taker < count && !take(own[taker], fresh[i], lengths[slot], reference, SCORING)) ++taker;
            if (taker == count && count < most) own[counts[slot]++] = fresh[i];
        }
    }
}

// An item is a read, selected[item]: how many of its windows want a banded alignment of one kind.
KERNEL void count_tasks(i64 begin, i64 end, const i32* selected, const Window* windows, const i32* counts,
                        i64* task_counts, i64 most_windows, i32 kind) {
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item], count = 0;
        for (i32 i = 0; i < counts[slot]; ++i) count += windows[slot * most_windows + i].band == -kind;
        task_counts[item] = count;
    }
}

// task_ends: the inclusive prefix sum of task_counts. A task is the number of a window, task_slots its read.
KERNEL void list_tasks(i64 begin, i64 end, const i32* selected, const Window* windows, const i32* counts,
                       const i64* task_ends, i64* tasks, i32* task_slots, i64 most_windows, i32 kind) {
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item], next = item ? task_ends[item - 1] : 0;
        for (i32 i = 0; i < counts[slot]; ++i) {
            if (windows[slot * most_windows + i].band != -kind) continue;
            tasks[next] = slot * most_windows + i;
            task_slots[next++] = (i32)slot;
        }
    }
}
