// Extension: banded alignment scores of windows in which a gap may pay, and CIGARs of the planned records.
#include "mapping/alignments.cuh"
#include "mapping/record_plan.cuh"
#include "mapping/smith_waterman.cuh"
#include "mapping/tandem.cuh"

// True if a warp aligns a band together: wide bands need more registers than a thread has; 32-bit scores are rare.
template <class Lane, i32 WIDTH> const bool WARP_PER_BAND =
        WARP_WIDTH > 1 && (has_long_gaps(WIDTH) || sizeof(typename Lane::Item) > 2);

// Write the best scores of Lane::width bands to `results`.
template <class Lane, i32 WIDTH> HOST_DEVICE void score_bands(const Band* bands, const Scoring& scoring, i32* results) {
    if constexpr (WARP_PER_BAND<Lane, WIDTH>) {
        for (i32 lane = 0; lane < Lane::width; ++lane)
            results[lane] = fill_band(bands[lane], scoring, Steps<WIDTH>{nullptr}).score;
    } else {
        BandedScores<Lane, WIDTH> scores;
        scores.align(bands, scoring, results);
    }
}

// Align the windows of Lane::width tasks and raise their scores. A task is the row of a window; the last tasks may be
// NO_TASK. task_slots: the slot of each task's read.
template <class Lane, i32 WIDTH> HOST_DEVICE void score_tasks(const Reference& reference, const Queries& queries,
        const i64* tasks, const i32* task_slots, Window* windows, const Scoring& scoring) {
    Band bands[Lane::width];
    i32 results[Lane::width];
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        i32 other = tasks[lane] == NO_TASK ? 0 : lane;
        bands[lane] = band_of(reference, queries, task_slots[other], windows[tasks[other]]);
    }
    score_bands<Lane, WIDTH>(bands, scoring, results);
    if (WARP_PER_BAND<Lane, WIDTH> && warp_lane() != 0) return;
    for (i32 lane = 0; lane < Lane::width && tasks[lane] != NO_TASK; ++lane) {
        Window& window = windows[tasks[lane]];
        window.score = maximum(window.score, results[lane]);
        window.band = -window.band;
    }
}

// An item is Lane::width tasks; all tasks of a launch have the same kind of band.
#define SCORE_WINDOWS(name, Lane, WIDTH, ITEMS)                                                                       \
    KERNEL void name(ITEMS items, Queries queries, Reference reference, Scoring scoring, const i64* tasks OF(tasks),  \
            const i32* task_slots OF(tasks), Window* windows OF(any)) {                                               \
        FOR_EACH(item, items)                                                                                         \
            score_tasks<Lane, WIDTH>(reference, queries, tasks + item * Lane::width, task_slots + item * Lane::width, \
                    windows, scoring);                                                                                \
    }

SCORE_WINDOWS(score_16_bits_narrow, Lanes16, NARROW_WIDTH, Items)
SCORE_WINDOWS(score_16_bits_middle, Lanes16, MIDDLE_WIDTH, Items)
SCORE_WINDOWS(score_16_bits_wide, Lanes16, WIDE_WIDTH, WarpItems)
SCORE_WINDOWS(score_16_bits_widest, Lanes16, WIDEST_WIDTH, WarpItems)
SCORE_WINDOWS(score_32_bits_narrow, Lane32, NARROW_WIDTH, WarpItems)
SCORE_WINDOWS(score_32_bits_middle, Lane32, MIDDLE_WIDTH, WarpItems)
SCORE_WINDOWS(score_32_bits_wide, Lane32, WIDE_WIDTH, WarpItems)
SCORE_WINDOWS(score_32_bits_widest, Lane32, WIDEST_WIDTH, WarpItems)

// Write the CIGAR of a window's ungapped segment in a read of `length` bases, with the gap of a tandem repeat unless
// `gap` is null; return the number of operations.
HOST_DEVICE i32 write_segment_cigar(const Window& window, i32 length, const TandemGap* gap, u32* operations) {
    Cigar cigar = {operations, 0};
    cigar.add(CLIPPED, window.start);
    if (gap) {
        cigar.add(MATCHED, gap->at - window.start);
        cigar.add(DELETED, gap->deleted);
        cigar.add(INSERTED, gap->inserted);
        cigar.add(MATCHED, window.end - gap->at - gap->inserted);
    } else cigar.add(MATCHED, window.end - window.start);
    cigar.add(CLIPPED, length - window.end);
    return cigar.count;
}

const i32 TRACED_PER_ITEM = WARP_WIDTH > 1 ? 1 : Lanes16::width;  // entries per item of a traceback kernel
// Traceback of up to TRACED_PER_ITEM entries whose windows have the same kind of band.
template <i32 WIDTH> struct Tracing {
    const Scoring& scoring;
    const RecordPlan& plan;
    const Extensions& extensions;
    const i64* entries;
    i32 count;
    Band bands[TRACED_PER_ITEM];
    // Return true if an alignment reaches the minimum score of its entry without bonuses.
    HOST_DEVICE bool reaches_min_score(i32 i, const Path& path) const {
        AlignedRead aligned = {bands[i].reference, nullptr, bands[i].bases, bands[i].mask, path.reference_start,
                extensions.cigar(entries[i]), path.operations};
        return measure(aligned, scoring).score >= plan.min_scores[entries[i]];
    }
    HOST_DEVICE void store(i32 i, const Path& path) const {
        extensions.counts[entries[i]] = path.operations;
        extensions.reference_starts[entries[i]] = path.reference_start;
    }
    // Trace the best alignment of an entry, or, if it falls below the minimum score without bonuses for reached read
    // ends, the best alignment without bonuses. The first lane of the warp stores it.
    HOST_DEVICE void trace(i32 i, u8* steps) const {
        Scoring rules = scoring;
        while (true) {
            BestCell best = fill_band(bands[i], rules, Steps<WIDTH>{steps});
            Path path = {0, 0, 0};
            bool is_last = rules.both_clips() == 0;
            if (warp_lane() == 0) {
                path = trace_path(bands[i], best, Steps<WIDTH>{steps}, extensions.cigar(entries[i]));
                is_last = is_last || reaches_min_score(i, path);
            }
            if (warp_broadcast(is_last)) {
                if (warp_lane() == 0) store(i, path);
                return;
            }
            rules.clip_5 = rules.clip_3 = 0;
        }
    }
#ifndef __CUDACC__
    // Trace all entries at once; return a mask of the entries that must be traced again without bonuses.
    HOST_DEVICE u32 trace_lanes(u8* steps) {
        for (i32 i = count; i < TRACED_PER_ITEM; ++i) bands[i] = bands[0];
        BandedPaths<WIDTH> paths;
        BestCell cells[TRACED_PER_ITEM];
        paths.fill(bands, scoring, steps, cells);
        u32 again = 0;
        for (i32 i = 0; i < count; ++i) {
            Path path = trace_path(bands[i], cells[i], LaneSteps<WIDTH>{steps, i}, extensions.cigar(entries[i]));
            if (scoring.both_clips() && !reaches_min_score(i, path)) again |= 1u << i;
            else store(i, path);
        }
        return again;
    }
#endif
    HOST_DEVICE void trace_all(u8* steps, bool fits_16_bits) {
        u32 again = (1u << count) - 1;
#ifndef __CUDACC__
        if constexpr (!has_long_gaps(WIDTH))
            if (fits_16_bits && count > 1) again = trace_lanes(steps);
#endif
        for (i32 i = 0; i < count; ++i)
            if (again >> i & 1) trace(i, steps);
    }
};

// An item is TRACED_PER_ITEM entries of traced[first, last), all with one kind of band; it uses item_bytes of `steps`.
#define TRACE_ALIGNMENTS(name, WIDTH)                                                                           \
    KERNEL void name(WarpItems items, Queries queries, Reference reference, Scoring scoring, RecordPlan plan,   \
            Extensions extensions, const Window* windows OF(any), const i64* traced OF(any),                    \
            u8* steps OF(items* item_bytes), i64 first, i64 last, i64 item_bytes, i32 fits_16_bits) {           \
        FOR_EACH(item, items) {                                                                                 \
            const i64* entries = traced + first + item * TRACED_PER_ITEM;                                       \
            i32 count = (i32)minimum((i64)TRACED_PER_ITEM, last - first - item * TRACED_PER_ITEM);              \
            Tracing<WIDTH> tracing = {scoring, plan, extensions, entries, count, {}};                           \
            for (i32 i = 0; i < count; ++i)                                                                     \
                tracing.bands[i] =                                                                              \
                        band_of(reference, queries, plan.slots[entries[i]], windows[plan.windows[entries[i]]]); \
            tracing.trace_all(steps + item * item_bytes, fits_16_bits);                                         \
        }                                                                                                       \
    }

TRACE_ALIGNMENTS(trace_narrow, NARROW_WIDTH)
TRACE_ALIGNMENTS(trace_middle, MIDDLE_WIDTH)
TRACE_ALIGNMENTS(trace_wide, WIDE_WIDTH)
TRACE_ALIGNMENTS(trace_widest, WIDEST_WIDTH)

// An item is a slot: count its read's entries to trace with each kind of band. counts: a row of `reads` per kind.
KERNEL void count_traced(Items items, Queries queries, RecordPlan plan, i64* counts OF(BAND_KINDS* reads), i64 reads) {
    FOR_EACH(slot, items) {
        i64 record = queries.order[slot];
        i32 found[BAND_KINDS] = {};
        for (i64 entry = plan.offsets[record]; entry < plan.offsets[record + 1]; ++entry)
            if (plan.bands[entry]) ++found[plan.bands[entry] - 1];
        for (i32 kind = 0; kind < BAND_KINDS; ++kind) counts[kind * reads + slot] = found[kind];
    }
}

// List the entries to trace by kind of band, and their reads' lengths. An item is a slot; slots are sorted by read
// length. ends: inclusive prefix sum of count_traced.
KERNEL void list_traced(Items items, Queries queries, RecordPlan plan, const i64* ends OF(BAND_KINDS* reads),
        i64* traced OF(traced), i32* lengths OF(traced), i64 reads) {
    FOR_EACH(slot, items) {
        i64 record = queries.order[slot], next[BAND_KINDS];
        for (i32 kind = 0; kind < BAND_KINDS; ++kind) {
            i64 cell = kind * reads + slot;
            next[kind] = cell ? ends[cell - 1] : 0;
        }
        for (i64 entry = plan.offsets[record]; entry < plan.offsets[record + 1]; ++entry) {
            if (!plan.bands[entry]) continue;
            i64 index = next[plan.bands[entry] - 1]++;
            traced[index] = entry;
            lengths[index] = queries.lengths[slot];
        }
    }
}

// Write CIGAR and start of the ungapped segment of each entry's window, unless the entry is traced.
KERNEL void place_ungapped_alignments(Items items, Queries queries, Reference reference, Scoring scoring,
        RecordPlan plan, Extensions extensions, const Window* windows OF(any)) {
    FOR_EACH(entry, items) {
        extensions.counts[entry] = 0;
        extensions.reference_starts[entry] = 0;
        if (plan.windows[entry] < 0 || plan.bands[entry]) continue;
        const Window& window = windows[plan.windows[entry]];
        i64 slot = plan.slots[entry];
        TandemSearch search = {reference, queries, window, slot};
        TandemGap gap;
        bool found = search.find(scoring, gap);
        extensions.counts[entry] =
                write_segment_cigar(window, queries.lengths[slot], found ? &gap : nullptr, extensions.cigar(entry));
        extensions.reference_starts[entry] = window.diagonal + window.start + (found ? gap.shift : 0);
    }
}
