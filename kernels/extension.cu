// Extension: banded alignment scores for the windows in which gaps may pay, and the CIGARs of the reported ones.
#include "smith_waterman.cuh"
#include "traceback.cuh"

// An item is Lane::width tasks; a task is the number of a window, slot * most_windows + its rank.
template <class Lane, i32 WIDTH>
HOST_DEVICE void score_group(const Reference& reference, const Queries& queries, const i64* tasks, Window* windows,
                             i64 group, i64 task_count, i64 most_windows, const Scoring& scoring) {
    Band bands[Lane::width];
    i32 results[Lane::width];
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        i64 task = tasks[minimum(group * Lane::width + lane, task_count - 1)];
        bands[lane] = band_of(reference, queries, task / most_windows, windows[task]);
    }
    BandedScores<Lane, WIDTH> scores;
    scores.align(bands, scoring, results);
    for (i32 lane = 0; lane < Lane::width && group * Lane::width + lane < task_count; ++lane) {
        Window& window = windows[tasks[group * Lane::width + lane]];
        window.score = maximum(window.score, results[lane]);
        window.band = -window.band;
    }
}

// Tasks of different bands do not meet in a launch.
#define SCORE_WINDOWS(name, Lane, KIND)                                                                                 \
    KERNEL void name(i64 begin, i64 end, QUERY_ARGUMENTS, REFERENCE_ARGUMENTS, const i64* tasks, Window* windows,      \
                     i64 task_count, i64 most_windows, SCORING_ARGUMENTS) {                                            \
        Reference reference = REFERENCE;                                                                               \
        Queries queries = QUERIES;                                                                                     \
        FOR_EACH(group, begin, end)                                                                                    \
            score_group<Lane, KIND>(reference, queries, tasks, windows, group, task_count, most_windows, SCORING);     \
    }

SCORE_WINDOWS(score_16_bits_narrow, Narrow, 32)
SCORE_WINDOWS(score_16_bits_middle, Narrow, 64)
SCORE_WINDOWS(score_16_bits_wide, Narrow, 256)
SCORE_WINDOWS(score_32_bits_narrow, Single, 32)
SCORE_WINDOWS(score_32_bits_middle, Single, 64)
SCORE_WINDOWS(score_32_bits_wide, Single, 256)

// The CIGAR of a window's ungapped segment.
HOST_DEVICE i32 lay_segment(const Window& window, i32 length, u32* operations) {
    Cigar cigar = {operations, 0};
    cigar.add(CLIPPED, window.begin);
    cigar.add(MATCHED, window.end - window.begin);
    cigar.add(CLIPPED, length - window.end);
    return cigar.count;
}

// An item is a line of `traced`; its own part of steps and scores is chosen by item, which counts from the launch's first.
// It fills the line's part of `operations`.
KERNEL void trace_alignments(i64 begin, i64 end, QUERY_ARGUMENTS, REFERENCE_ARGUMENTS, const i64* traced, const Window* windows,
                             const i32* line_slots, const i32* ranks, const i64* operation_ends, const i64* rooms, u8* steps,
                             i32* scores, u32* operations, i32* operation_counts, i64* reference_starts, i64 first,
                             i64 step_bytes, i64 score_room, i64 most_windows, SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Queries queries = QUERIES;
    FOR_EACH(item, begin, end) {
        i64 line = traced[first + item], slot = line_slots[line];
        const Window& window = windows[slot * most_windows + ranks[line]];
        u32* own = operations + operation_ends[line] - rooms[line];
        Path path = trace(band_of(reference, queries, slot, window), SCORING, steps + item * step_bytes,
                          scores + item * score_room, own);
        operation_counts[line] = path.operations;
        reference_starts[line] = path.reference_start;
    }
}

// An item is a line: the CIGAR of a window whose ungapped segment is its alignment.
KERNEL void lay_alignments(i64 begin, i64 end, const i32* lengths, const Window* windows, const i32* line_slots,
                           const i32* ranks, const i64* operation_ends, const i64* rooms, u32* operations,
                           i32* operation_counts, i64* reference_starts, i64 most_windows) {
    FOR_EACH(line, begin, end) {
        i64 slot = line_slots[line];
        operation_counts[line] = 0;
        reference_starts[line] = 0;
        if (ranks[line] < 0) continue;
        const Window& window = windows[slot * most_windows + ranks[line]];
        if (window.gapped()) continue;
        operation_counts[line] = lay_segment(window, lengths[slot], operations + operation_ends[line] - rooms[line]);
        reference_starts[line] = window.diagonal + window.begin;
    }
}
