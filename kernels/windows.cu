// Windows: the places where a read may belong. Diagonals closer than half a band are one window.
#include "diagonals.cuh"
#include "windows.cuh"

const i32 SPREAD = 24;  // diagonals at most this far apart make one window

// A window while it is put together: the stretch of the query that its segments cover, and what an alignment that
// steps between their diagonals may score.
struct Draft {
    Window window;
    i32 promise, begin, end;

    HOST_DEVICE bool takes(const Diagonal& one, const Reference& reference) const {
        i64 offset = one.diagonal - window.diagonal;
        return one.orientation == window.orientation && offset >= -SPREAD && offset <= SPREAD &&
               reference.contig_of(one.diagonal + one.segment.begin) == reference.contig_of(window.diagonal + window.begin);
    }
    HOST_DEVICE void add(const Diagonal& one, const Scoring& scoring) {
        i32 offset = (i32)(one.diagonal - window.diagonal);
        window.low = minimum(window.low, offset);
        window.high = maximum(window.high, offset);
        i32 shared = maximum(minimum(end, one.segment.end) - maximum(begin, one.segment.begin), 0);
        i32 gain = one.segment.score - shared * scoring.match - scoring.gap_open - maximum(offset, -offset) * scoring.gap_extend;
        if (gain <= 0 || (one.segment.begin >= begin && one.segment.end <= end)) return;
        promise += gain;
        begin = minimum(begin, one.segment.begin);
        end = maximum(end, one.segment.end);
    }
};

// Windows from the kept diagonals, the most promising first; returns how many.
HOST_DEVICE i32 join(const Diagonal* kept, i32 kept_count, const Reference& reference, Window* windows, i32 most, i32 length,
                     const Scoring& scoring) {
    Draft drafts[KEPT];
    i32 count = 0, written = 0;
    for (i32 i = 0; i < kept_count; ++i) {
        const Diagonal& one = kept[i];
        i32 home = 0;
        while (home < count && !drafts[home].takes(one, reference)) ++home;
        if (home < count) {
            drafts[home].add(one, scoring);
            continue;
        }
        Segment segment = one.segment;
        bool align = scoring.perfect(length) - segment.score > scoring.gap_open + scoring.gap_extend;
        drafts[count++] = Draft{Window{one.diagonal, segment.score, segment.score, segment.begin, segment.end, 0, 0,
                                       one.orientation, align},
                                segment.score, segment.begin, segment.end};
    }
    for (i32 first = 0; written < minimum(count, most); ++written) {
        i32 best = -1;
        for (i32 i = 0; i < count; ++i)
            if (drafts[i].promise >= 0 && (best < 0 || drafts[i].promise > drafts[best].promise)) best = i;
        if (written == 0) first = drafts[best].promise;
        Window window = drafts[best].window;
        // Far below the best, no gap makes up for what is missing.
        bool align = window.band && 3 * drafts[best].promise >= first;
        window.band = align ? band_kind(length, window.high - window.low) : NO_BAND;
        windows[written] = window;
        drafts[best].promise = -1;
    }
    return written;
}

// An item is a read, selected[item]; it writes windows[slot * most ...], the most promising first, and counts[slot].
KERNEL void join_diagonals(i64 begin, i64 end, const i32* lengths, const i32* selected, const Diagonal* found,
                           const i32* found_counts, REFERENCE_ARGUMENTS, Window* windows, i32* counts, i32 most_windows,
                           SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item];
        counts[slot] = join(found + item * KEPT, found_counts[item], reference, windows + slot * most_windows,
                            most_windows, lengths[slot], SCORING);
    }
}

// An item is a read, selected[item]: how many of its windows want a banded alignment of one kind.
KERNEL void count_tasks(i64 begin, i64 end, const i32* selected, const Window* windows, const i32* counts, i64* task_counts,
                        i64 most_windows, i32 kind) {
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item], count = 0;
        for (i32 i = 0; i < counts[slot]; ++i) count += windows[slot * most_windows + i].band == kind;
        task_counts[item] = count;
    }
}

// task_ends: the inclusive prefix sum of task_counts. A task is the number of a window.
KERNEL void list_tasks(i64 begin, i64 end, const i32* selected, const Window* windows, const i32* counts, const i64* task_ends,
                       i64* tasks, i64 most_windows, i32 kind) {
    FOR_EACH(item, begin, end) {
        i64 slot = selected[item], next = item ? task_ends[item - 1] : 0;
        for (i32 i = 0; i < counts[slot]; ++i)
            if (windows[slot * most_windows + i].band == kind) tasks[next++] = slot * most_windows + i;
    }
}
