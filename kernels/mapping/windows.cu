// Build windows, the candidate placements of a read, from its best diagonals.
#include "mapping/window_builder.cuh"

// Limit on the windows of a read: if not all fit, at most half of them are on ALT contigs, as long as others are left.
struct WindowQuota {
    i32 max_windows, others, alternates;  // others: candidates on no ALT contig; alternates: candidates on one so far
    HOST_DEVICE bool admit(const Window& window) {
        return !window.alternate || alternates++ < maximum(max_windows - others, max_windows / 2);
    }
};

const i32 MAX_DEFICIT_FOR_LONG_GAP = 30;  // points below the best window at which a long gap no longer matters
// Merge the best diagonals into at most max_windows windows, the most promising first; return their number.
HOST_DEVICE i32 build_windows(const Diagonal* diagonals, i32 diagonal_count, const Reference& reference,
        Window* windows, i32 max_windows, i32 length, const Scoring& scoring) {
    WindowBuilder builders[MAX_DIAGONALS];
    i32 count = 0, written = 0;
    for (i32 i = 0; i < diagonal_count; ++i) {
        const Diagonal& diagonal = diagonals[i];
        i32 home = 0;
        while (home < count && !builders[home].accepts(diagonal, reference, scoring)) ++home;
        if (home < count) {
            builders[home].add(diagonal, scoring);
            continue;
        }
        builders[count++] = builder_of(diagonal, length, scoring);
    }
    i32 top_bounds[2] = {}, top_scores[2] = {};  // best bounds and scores: on no ALT contig; on all
    WindowQuota quota = {max_windows, 0, 0};
    for (i32 i = 0; i < count; ++i) {
        quota.others += !builders[i].window.alternate;
        for (i32 kind = builders[i].window.alternate; kind < 2; ++kind) {
            top_bounds[kind] = maximum(top_bounds[kind], builders[i].score_bound);
            top_scores[kind] = maximum(top_scores[kind], builders[i].window.score);
        }
    }
    for (i32 left = count; left && written < max_windows; --left) {
        i32 best = -1;
        for (i32 i = 0; i < count; ++i)
            if (builders[i].score_bound >= 0 && (best < 0 || builders[i].score_bound > builders[best].score_bound))
                best = i;
        Window window = builders[best].window;
        // Far below the best window no gap makes up for the difference.
        bool align = window.band && 2 * builders[best].score_bound >= top_bounds[window.alternate];
        if (builders[best].score_bound + MAX_DEFICIT_FOR_LONG_GAP < top_scores[window.alternate]) window.narrow();
        window.band = (i16)(align ? -band_kind(length, window.high - window.low) : NO_BAND);
        if (quota.admit(window)) windows[written++] = window;
        builders[best].score_bound = -1;
    }
    return written;
}

// Return an upper bound of the scores of dropped diagonals, 0 if none was dropped. If more than half of the diagonals
// are on ALT contigs, no diagonal on another contig was dropped.
HOST_DEVICE i32 dropped_score(const Diagonal* diagonals, i32 count) {
    i32 alternates = 0;
    for (i32 i = 0; i < count; ++i) alternates += diagonals[i].alternate;
    if (count < MAX_DIAGONALS || (alternates > MAX_DIAGONALS / 2 && alternates < MAX_DIAGONALS)) return 0;
    return diagonals[MAX_DIAGONALS - 1].segment.score;
}

// Replace the windows of each read selected[item] by the windows of its diagonals `found`, the most promising first.
KERNEL void replace_windows(Items items, Queries queries, Reference reference, Scoring scoring,
        const i32* selected OF(selected), DiagonalTable found, WindowTable windows) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        windows.counts[slot] = build_windows(found.rows + item * MAX_DIAGONALS, found.counts[item], reference,
                windows.of(slot), MAX_SEED_WINDOWS, queries.lengths[slot], scoring);
        windows.unexamined_prefixes[slot] = found.unexamined_prefixes[item];
        windows.dropped_scores[slot] = dropped_score(found.rows + item * MAX_DIAGONALS, found.counts[item]);
    }
}

// Return true if window `own` accepts the candidate's segment. If that promises a higher score, `own` is widened and
// aligned again: in a repeat, the segments of other copies may have hidden the far side of a gap.
HOST_DEVICE bool widen_with(
        Window& own, const Window& candidate, i32 length, const Reference& reference, const Scoring& scoring) {
    WindowBuilder builder = {own, 0, length};
    Diagonal diagonal = {candidate.diagonal, 0, Segment{candidate.score, candidate.start, candidate.end},
            candidate.orientation, candidate.alternate};
    if (!builder.accepts(diagonal, reference, scoring)) return false;
    builder.add(diagonal, scoring);
    if (builder.score_bound > 0) {
        own = builder.window;
        own.band = (i16)-band_kind(length, own.high - own.low);
    }
    return true;
}

// Append windows of diagonals `found` that no window of read selected[item] accepts, up to max_windows windows.
KERNEL void add_windows(Items items, Queries queries, Reference reference, Scoring scoring,
        const i32* selected OF(selected), DiagonalTable found, WindowTable windows, i32 max_windows) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        Window candidates[MAX_DIAGONALS], *own = windows.of(slot);
        i32 length = queries.lengths[slot], *count = windows.counts + slot;
        i32 more = build_windows(found.rows + item * MAX_DIAGONALS, found.counts[item], reference, candidates,
                MAX_DIAGONALS, length, scoring);
        WindowQuota quota = {max_windows - *count, 0, 0};
        for (i32 i = 0; i < more; ++i) quota.others += !candidates[i].alternate;
        for (i32 i = 0; i < more; ++i) {
            i32 home = 0;
            while (home < *count && !widen_with(own[home], candidates[i], length, reference, scoring)) ++home;
            if (home == *count && *count < max_windows && quota.admit(candidates[i])) own[(*count)++] = candidates[i];
        }
    }
}

// Copy the windows of each read selected[item] to `copies`, MAX_WINDOWS rows an item; unused rows are left as they are.
KERNEL void copy_windows(
        Items items, WindowTable windows, const i32* selected OF(items), Window* copies OF(items* MAX_WINDOWS)) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        for (i32 i = 0; i < windows.counts[slot]; ++i) copies[item * MAX_WINDOWS + i] = windows.of(slot)[i];
    }
}

const i64 READS_PER_BLOCK = 4096;
// One item per READS_PER_BLOCK reads: add the number of their windows to `total`.
KERNEL void count_windows(BlockItems items, const i32* counts OF(reads), u64* total OF(1), i64 reads) {
    FOR_EACH(section, items) {
        BLOCK_ARRAY(u32, sum, 1);
        if (block_thread() == 0) sum[0] = 0;
        block_sync();
        i64 last = minimum((section + 1) * READS_PER_BLOCK, reads);
        u32 own = 0;
        for (i64 slot = section * READS_PER_BLOCK + block_thread(); slot < last; slot += BLOCK_WIDTH)
            own += counts[slot];
        block_atomic_add(&sum[0], own);
        block_sync();
        if (block_thread() == 0) atomic_add(&total[0], sum[0]);
        block_sync();
    }
}

// Count the windows of each read, selected[item] of `count`, that need a banded alignment, by kind except
// excluded_kind. counts: all reads of a kind, then the next kind.
KERNEL void count_tasks(Items items, WindowTable windows, const i32* selected OF(count),
        i64* counts OF(BAND_KINDS* count), i64 count, i32 excluded_kind) {
    FOR_EACH(item, items) {
        const Window* own = windows.of(selected[item]);
        i32 found[BAND_KINDS] = {}, own_count = windows.counts[selected[item]];
        for (i32 i = 0; i < own_count; ++i)
            if (own[i].band < 0 && own[i].band != -excluded_kind) ++found[-own[i].band - 1];
        for (i32 kind = 0; kind < BAND_KINDS; ++kind) counts[kind * count + item] = found[kind];
    }
}

// Capacity for the tasks of each kind; the kinds follow each other.
struct TaskCapacities {
    i64 narrow, middle, wide, widest;
    HOST_DEVICE i64 of(i32 kind) const {
        return kind == NARROW_BAND ? narrow : kind == MIDDLE_BAND ? middle : kind == WIDE_BAND ? wide : widest;
    }
};

// Return the number of tasks of the kinds before kind row + 1. ends: inclusive sum of count_tasks, `count` per kind.
HOST_DEVICE i64 tasks_before(const i64* ends, i64 count, i32 row) { return row && count ? ends[row * count - 1] : 0; }
// One item per kind of band. needed: its tasks; counts: groups of `lanes` tasks each, 0 beyond the kind's capacity.
KERNEL void clamp_task_counts(Items items, const i64* ends OF(BAND_KINDS* count), i64* counts OF(items),
        i64* needed OF(items), TaskCapacities capacities, i64 count, i32 lanes) {
    FOR_EACH(row, items) {
        i64 tasks = tasks_before(ends, count, (i32)row + 1) - tasks_before(ends, count, (i32)row);
        needed[row] = tasks;
        counts[row] = tasks <= capacities.of((i32)row + 1) ? (tasks + lanes - 1) / lanes : 0;
    }
}

// List the windows counted by count_tasks as tasks, by kind. tasks: the row of a window; task_slots: its read's slot.
// ends: inclusive prefix sum of count_tasks; a kind has space for its capacity.
KERNEL void list_tasks(Items items, WindowTable windows, const i32* selected OF(count),
        const i64* ends OF(BAND_KINDS* count), TaskCapacities capacities, i64* tasks OF(tasks),
        i32* task_slots OF(tasks), i64 count, i32 excluded_kind) {
    FOR_EACH(item, items) {
        i64 slot = selected[item], next[BAND_KINDS], last[BAND_KINDS], first = 0;
        for (i32 row = 0; row < BAND_KINDS; ++row) {
            i64 cell = row * count + item;
            next[row] = first + (cell ? ends[cell - 1] : 0) - tasks_before(ends, count, row);
            last[row] = first += capacities.of(row + 1);
        }
        for (i32 i = 0; i < windows.counts[slot]; ++i) {
            i32 band = windows.of(slot)[i].band, row = -band - 1;
            if (band >= 0 || band == -excluded_kind || next[row] >= last[row]) continue;
            i64 task = next[row]++;
            tasks[task] = slot * MAX_WINDOWS + i;
            task_slots[task] = (i32)slot;
        }
    }
}

// Write the row rows[item] of a window and its slot as a task; slots: the slot of every row.
KERNEL void take_tasks(Items items, const i32* rows OF(items), const i32* slots OF(any), i64* tasks OF(items),
        i32* task_slots OF(items)) {
    FOR_EACH(item, items) {
        tasks[item] = rows[item];
        task_slots[item] = slots[rows[item]];
    }
}
