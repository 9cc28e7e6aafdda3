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

// An item is a slot of `traced`; its own part of steps and scores is chosen by item - begin_item, which counts from the
// launch's first. It fills the read's part of `operations`.
KERNEL void trace_alignments(i64 begin, i64 end, QUERY_ARGUMENTS, REFERENCE_ARGUMENTS, const i64* traced, const Window* windows,
                             const i32* chosen, const i64* operation_offsets, u8* steps, i32* scores, u32* operations,
                             i32* operation_counts, i64* reference_starts, i64 first, i64 step_bytes, i64 score_room,
                             i64 most_windows, SCORING_ARGUMENTS) {
    Reference reference = REFERENCE;
    Queries queries = QUERIES;
    FOR_EACH(item, begin, end) {
        i64 slot = traced[first + item];
        Band band = band_of(reference, queries, slot, windows[slot * most_windows + chosen[slot]]);
        Path path = trace(band, SCORING, steps + item * step_bytes, scores + item * score_room,
                          operations + operation_offsets[slot]);
        operation_counts[slot] = path.operations;
        reference_starts[slot] = path.reference_start;
    }
}

// An item is a slot: the CIGAR of a chosen window whose ungapped segment is its alignment.
KERNEL void lay_alignments(i64 begin, i64 end, const i32* lengths, const Window* windows, const i32* chosen,
                           const i64* operation_offsets, u32* operations, i32* operation_counts, i64* reference_starts,
                           i64 most_windows) {
    FOR_EACH(slot, begin, end) {
        if (chosen[slot] < 0) continue;
        const Window& window = windows[slot * most_windows + chosen[slot]];
        if (window.score != window.ungapped) continue;
        Cigar cigar = {operations + operation_offsets[slot], 0};
        cigar.add(CLIPPED, window.begin);
        cigar.add(MATCHED, window.end - window.begin);
        cigar.add(CLIPPED, lengths[slot] - window.end);
        operation_counts[slot] = cigar.count;
        reference_starts[slot] = window.diagonal + window.begin;
    }
}
