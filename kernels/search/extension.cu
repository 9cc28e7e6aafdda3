// Extension: banded alignment scores for the windows in which gaps may pay, and the CIGARs of the reported ones.
#include "search/alignments.cuh"
#include "search/record_plan.cuh"
#include "search/smith_waterman.cuh"
#include "search/tandem.cuh"

// An item is Lane::width tasks; a task is the row of a window, task_slots its read.
template <class Lane, i32 WIDTH> HOST_DEVICE void score_group(const Reference& reference, const Queries& queries,
                                                              const i64* tasks, const i32* task_slots, Window* windows,
                                                              i64 group, i64 task_count, const Scoring& scoring) {
    Band bands[Lane::width];
    i32 results[Lane::width];
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        i64 number = minimum(group * Lane::width + lane, task_count - 1);
        bands[lane] = band_of(reference, queries, task_slots[number], windows[tasks[number]]);
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
#define SCORE_WINDOWS(name, Lane, KIND)                                                                               \
    KERNEL void name(i64 begin, i64 end, Queries queries, Reference reference, Scoring scoring,                       \
                     const i64* tasks OF(task_count), const i32* task_slots OF(task_count), Window* windows OF(some), \
                     i64 task_count) {                                                                                \
        FOR_EACH(group, begin, end)                                                                                   \
            score_group<Lane, KIND>(reference, queries, tasks, task_slots, windows, group, task_count, scoring);      \
    }

SCORE_WINDOWS(score_16_bits_narrow, Narrow, 32)
SCORE_WINDOWS(score_16_bits_middle, Narrow, 64)
SCORE_WINDOWS(score_16_bits_wide, Narrow, 160)
SCORE_WINDOWS(score_16_bits_widest, Narrow, 256)
SCORE_WINDOWS(score_32_bits_narrow, Single, 32)
SCORE_WINDOWS(score_32_bits_middle, Single, 64)
SCORE_WINDOWS(score_32_bits_wide, Single, 160)
SCORE_WINDOWS(score_32_bits_widest, Single, 256)

// The CIGAR of a window's ungapped segment, with one gap where that is a tandem repeat's.
HOST_DEVICE i32 lay_segment(const Window& window, i32 length, const TandemGap* gap, u32* operations) {
    Cigar cigar = {operations, 0};
    cigar.add(CLIPPED, window.begin);
    if (gap) {
        cigar.add(MATCHED, gap->at - window.begin);
        cigar.add(DELETED, gap->deleted);
        cigar.add(INSERTED, gap->inserted);
        cigar.add(MATCHED, window.end - gap->at - gap->inserted);
    } else cigar.add(MATCHED, window.end - window.begin);
    cigar.add(CLIPPED, length - window.end);
    return cigar.count;
}

// The alignment that is reported: the best one or, where that falls below `least` without the bonuses for the ends that it
// reaches, the best one without them.
template <i32 WIDTH>
HOST_DEVICE Path trace_reported(const Band& band, Scoring scoring, Steps<WIDTH> steps, u32* operations, i32 least) {
    while (true) {
        Path path = trace(band, scoring, steps, operations);
        Aligned aligned = {band.reference,       nullptr,    band.bases,     band.mask,
                           path.reference_start, operations, path.operations};
        if (scoring.clip_penalty == 0 || measure(aligned, scoring).score >= least) return path;
        scoring.clip_penalty = 0;
    }
}

// An item is an entry of `traced`, from `first` on, all of them with windows of one band. Blocks of 2^lane_bits items have
// block_words words of `steps`, interleaved.
#define TRACE_ALIGNMENTS(name, WIDTH)                                                                             \
    KERNEL void name(i64 begin, i64 end, Queries queries, Reference reference, Scoring scoring, RecordPlan plan,  \
                     Extensions extensions, const Window* windows OF(some), const i64* traced OF(some),           \
                     u64* steps OF(((items - 1 >> lane_bits) + 1) * block_words), i64 first, i64 block_words) {   \
        i64 lanes = (i64)1 << queries.lane_bits;                                                                  \
        FOR_EACH(item, begin, end) {                                                                              \
            i64 entry = traced[first + item], slot = plan.slots[entry];                                           \
            Band band = band_of(reference, queries, slot, windows[plan.windows[entry]]);                          \
            Steps<WIDTH> own = {steps + (item >> queries.lane_bits) * block_words + (item & (lanes - 1)), lanes}; \
            Path path = trace_reported(band, scoring, own, extensions.cigar(entry), plan.least_scores[entry]);    \
            extensions.counts[entry] = path.operations;                                                           \
            extensions.reference_starts[entry] = path.reference_start;                                            \
        }                                                                                                         \
    }

TRACE_ALIGNMENTS(trace_narrow, 32)
TRACE_ALIGNMENTS(trace_middle, 64)
TRACE_ALIGNMENTS(trace_wide, 160)
TRACE_ALIGNMENTS(trace_widest, 256)

// An item is an entry: the CIGAR of its window's ungapped segment, unless it is one that is traced.
KERNEL void lay_alignments(i64 begin, i64 end, Queries queries, Reference reference, Scoring scoring, RecordPlan plan,
                           Extensions extensions, const Window* windows OF(some)) {
    FOR_EACH(entry, begin, end) {
        extensions.counts[entry] = 0;
        extensions.reference_starts[entry] = 0;
        if (plan.windows[entry] < 0 || plan.bands[entry]) continue;
        const Window& window = windows[plan.windows[entry]];
        i64 slot = plan.slots[entry];
        TandemSearch search = {reference, queries, window, slot};
        TandemGap gap;
        bool found = search.find(scoring, gap);
        extensions.counts[entry] =
            lay_segment(window, queries.lengths[slot], found ? &gap : nullptr, extensions.cigar(entry));
        extensions.reference_starts[entry] = window.diagonal + window.begin + (found ? gap.shift : 0);
    }
}
