// Windows: the places where a read may belong, from its best diagonals.
#include "mapping/window_builder.cuh"

// WindowQuota for some windows of a read. Where not all fit, no more than half of them are on ALT contigs, as long as others are
// left.
struct WindowQuota {
    i32 most, others, alternates;  // the windows on no ALT contig that want in; those on one that are let in

    HOST_DEVICE bool admits(const Window& window) {
        return !window.alternate || alternates++ < maximum(most - others, most / 2);
    }
};

const i32 WORSE = 30;  // points below the best at which it does not matter what a long gap would add

// Windows from the kept diagonals, the most promising first; returns how many.
HOST_DEVICE i32 join(const Diagonal* kept, i32 kept_count, const Reference& reference, Window* windows, i32 most,
                     i32 length, const Scoring& scoring) {
    WindowBuilder builders[MAX_DIAGONALS];
    i32 count = 0, written = 0;
    for (i32 i = 0; i < kept_count; ++i) {
        const Diagonal& one = kept[i];
        i32 home = 0;
        while (home < count && !builders[home].takes(one, reference, scoring)) ++home;
        if (home < count) {
            builders[home].add(one, scoring);
            continue;
        }
        builders[count++] = builder_of(one, length, scoring);
    }
    i32 firsts[2] = {}, tops[2] = {};  // the best of those on no ALT contig, and of all
    WindowQuota room = {most, 0, 0};
    for (i32 i = 0; i < count; ++i) {
        room.others += !builders[i].window.alternate;
        for (i32 kind = builders[i].window.alternate; kind < 2; ++kind) {
            firsts[kind] = maximum(firsts[kind], builders[i].score_bound);
            tops[kind] = maximum(tops[kind], builders[i].window.score);
        }
    }
    for (i32 left = count; left && written < most; --left) {
        i32 best = -1;
        for (i32 i = 0; i < count; ++i)
            if (builders[i].score_bound >= 0 && (best < 0 || builders[i].score_bound > builders[best].score_bound))
                best = i;
        Window window = builders[best].window;
        // Far below the best, no gap makes up for what is missing.
        bool align = window.band && 2 * builders[best].score_bound >= firsts[window.alternate];
        if (builders[best].score_bound + WORSE < tops[window.alternate]) window.narrow();
        window.band = (i16)(align ? -band_kind(length, window.high - window.low) : NO_BAND);
        if (room.admits(window)) windows[written++] = window;
        builders[best].score_bound = -1;
    }
    return written;
}

// The best score that a diagonal may have which had no room, 0 where all had. Where more than half are of ALT contigs,
// none of another one was left out.
HOST_DEVICE i32 dropped_score(const Diagonal* kept, i32 count) {
    i32 alternates = 0;
    for (i32 i = 0; i < count; ++i) alternates += kept[i].alternate;
    if (count < MAX_DIAGONALS || (alternates > MAX_DIAGONALS / 2 && alternates < MAX_DIAGONALS)) return 0;
    return kept[MAX_DIAGONALS - 1].segment.score;
}

// An item is a read, selected[item]: its windows, the most promising first.
KERNEL void replace_windows(Items items, Queries queries, Reference reference, Scoring scoring,
                            const i32* selected OF(selected), DiagonalTable found, WindowTable windows) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        windows.counts[slot] = join(found.rows + item * MAX_DIAGONALS, found.counts[item], reference, windows.of(slot),
                                    MAX_SEED_WINDOWS, queries.lengths[slot], scoring);
        windows.unexamined_prefixes[slot] = found.unexamined_prefixes[item];
        windows.dropped_scores[slot] = dropped_score(found.rows + item * MAX_DIAGONALS, found.counts[item]);
    }
}

// Whether a window takes another one's segment beside its own. Where that promises more, the window is widened and
// aligned once more: in a repeat, the segments of other copies may have hidden the far side of a gap.
HOST_DEVICE bool take(Window& own, const Window& fresh, i32 length, const Reference& reference,
                      const Scoring& scoring) {
    WindowBuilder builder = {own, 0, length};
    Diagonal one = {fresh.diagonal, 0, Segment{fresh.score, fresh.begin, fresh.end}, fresh.orientation,
                    fresh.alternate};
    if (!builder.takes(one, reference, scoring)) return false;
    builder.add(one, scoring);
    if (builder.score_bound > 0) {
        own = builder.window;
        own.band = (i16)-band_kind(length, own.high - own.low);
    }
    return true;
}

// An item is a read, selected[item], whose windows keep their ranks: those that its diagonals make are put behind them
// where none of them takes them, as far as there is room for `most` in all.
KERNEL void add_windows(Items items, Queries queries, Reference reference, Scoring scoring,
                        const i32* selected OF(selected), DiagonalTable found, WindowTable windows, i32 most) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        Window fresh[MAX_DIAGONALS], *own = windows.of(slot);
        i32 length = queries.lengths[slot], *count = windows.counts + slot;
        i32 more = join(found.rows + item * MAX_DIAGONALS, found.counts[item], reference, fresh, MAX_DIAGONALS, length,
                        scoring);
        WindowQuota room = {most - *count, 0, 0};
        for (i32 i = 0; i < more; ++i) room.others += !fresh[i].alternate;
        for (i32 i = 0; i < more; ++i) {
            i32 taker = 0;
            while (taker < *count && !take(own[taker], fresh[i], length, reference, scoring)) ++taker;
            if (taker == *count && *count < most && room.admits(fresh[i])) own[(*count)++] = fresh[i];
        }
    }
}

// An item is a read, selected[item], whose windows go to `copies`, MAX_WINDOWS rows an item; further rows stay as they were.
KERNEL void copy_windows(Items items, WindowTable windows, const i32* selected OF(items),
                         Window* copies OF(items* MAX_WINDOWS)) {
    FOR_EACH(item, items) {
        i64 slot = selected[item];
        for (i32 i = 0; i < windows.counts[slot]; ++i) copies[item * MAX_WINDOWS + i] = windows.of(slot)[i];
    }
}

const i64 READS_PER_BLOCK = 4096;

// An item is so many reads, or what is left of them; total: to which the number of their windows is added.
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

// An item is a read, one of `count`, selected[item]: how many of its windows want a banded alignment of each kind, but for
// `without`; counts: of all reads for each kind.
KERNEL void count_tasks(Items items, WindowTable windows, const i32* selected OF(count),
                        i64* counts OF(BAND_KINDS* count), i64 count, i32 without) {
    FOR_EACH(item, items) {
        const Window* own = windows.of(selected[item]);
        i32 found[BAND_KINDS] = {}, own_count = windows.counts[selected[item]];
        for (i32 i = 0; i < own_count; ++i)
            if (own[i].band < 0 && own[i].band != -without) ++found[-own[i].band - 1];
        for (i32 kind = 0; kind < BAND_KINDS; ++kind) counts[kind * count + item] = found[kind];
    }
}

// For how many tasks of each kind there is room: those of a kind lie behind the room of the one before.
struct TaskCapacities {
    i64 narrow, middle, wide, widest;

    HOST_DEVICE i64 of(i32 kind) const {
        return kind == NARROW_BAND ? narrow : kind == MIDDLE_BAND ? middle : kind == WIDE_BAND ? wide : widest;
    }
};

// How many of the tasks that are counted in `ends`, the inclusive prefix sum of rows of so many counts, are of kinds before
// that of a row.
HOST_DEVICE i64 tasks_before(const i64* ends, i64 count, i32 row) { return row && count ? ends[row * count - 1] : 0; }

// An item is a kind. told: how many items of `lanes` tasks there are, none without room for all; needed: how many tasks.
KERNEL void clamp_task_counts(Items items, const i64* ends OF(BAND_KINDS* count), i64* told OF(items), i64* needed OF(items),
                       TaskCapacities capacities=cigar_capacities=capacities, i64 count, i32 lanes) {
    FOR_EACH(row, items) {
        i64 tasks = tasks_before(ends, count, (i32)row + 1) - tasks_before(ends, count, (i32)row);
        needed[row] = tasks;
        told[row] = tasks <= capacities=cigar_capacities=capacities.of((i32)row + 1) ? (tasks + lanes - 1) / lanes : 0;
    }
}

// ends: the inclusive prefix sum of counts. A task is the row of a window, task_slots its read.
KERNEL void list_tasks(Items items, WindowTable windows, const i32* selected OF(count),
                       const i64* ends OF(BAND_KINDS* count), TaskCapacities capacities=cigar_capacities=capacities, i64* tasks OF(tasks),
                       i32* task_slots OF(tasks), i64 count, i32 without) {
    FOR_EACH(item, items) {
        i64 slot = selected[item], next[BAND_KINDS], last[BAND_KINDS], first = 0;
        for (i32 row = 0; row < BAND_KINDS; ++row) {
            i64 cell = row * count + item;
            next[row] = first + (cell ? ends[cell - 1] : 0) - tasks_before(ends, count, row);
            last[row] = first += capacities=cigar_capacities=capacities.of(row + 1);
        }
        for (i32 i = 0; i < windows.counts[slot]; ++i) {
            i32 band = windows.of(slot)[i].band, row = -band - 1;
            if (band >= 0 || band == -without || next[row] >= last[row]) continue;
            i64 task = next[row]++;
            tasks[task] = slot * MAX_WINDOWS + i;
            task_slots[task] = (i32)slot;
        }
    }
}

// An item is a row that is a task; slots: of all rows.
KERNEL void take_tasks(Items items, const i32* rows OF(items), const i32* slots OF(any), i64* tasks OF(items),
                       i32* task_slots OF(items)) {
    FOR_EACH(item, items) {
        tasks[item] = rows[item];
        task_slots[item] = slots[rows[item]];
    }
}
