// Batches of pairs: the score and the end of every alignment, then its path. Pairs come in an order in which neighbours are
// alike. Lane::width of them are a group, which is what a thread takes; the groups of a warp are a block, which has a frame
// and scratch memory.
#include "pair_paths.cuh"
#include "pair_scores.cuh"

// The highest bits of a pair's key: behind the pairs that 16 bits suffice for come those that take 32, and last those
// that are too large.
const i64 IN_32_BITS = (i64)1 << 60, TOO_LARGE = (i64)1 << 61;

// Less than any H that a path needs.
HOST_DEVICE i64 never_of(i64 query_length, i64 target_length, Mode mode, const Comparison& comparison) {
    i64 lowest = mode == LOCAL ? 0 : comparison.gap_open + query_length * comparison.gap_extend;
    if (mode == GLOBAL) lowest += comparison.gap_open + target_length * comparison.gap_extend;
    return -lowest - comparison.match - comparison.mismatch - 2 * comparison.first_gap();
}

// Cells outside the matrix start there and lose what gaps cost, once more.
HOST_DEVICE bool fits_16_bits(i64 query_length, i64 target_length, Mode mode, const Comparison& comparison) {
    i64 most = comparison.match * minimum(query_length, target_length);
    return most - 2 * never_of(query_length, target_length, mode, comparison) <= 32000 && target_length <= 32000;
}

// What the columns of a pair take is as if it had so many rows more.
const i64 MARGIN = 24;

HOST_DEVICE i64 class_of(i64 query_length, i64 target_length, i64 most_cells, Mode mode, const Comparison& comparison) {
    if ((query_length + MARGIN) * (target_length + MARGIN) > most_cells) return TOO_LARGE;
    return fits_16_bits(query_length, target_length, mode, comparison) ? 0 : IN_32_BITS;
}

template <class Lane>
HOST_DEVICE i32 never_of(const Group<Lane>& group, const Pairs& pairs, Mode mode, const Comparison& comparison) {
    i64 never = 0;
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        i64 pair = group.pairs[lane];
        never = minimum(never, never_of(pairs.query_length(pair), pairs.target_length(pair), mode, comparison));
    }
    return (i32)never;
}

// An item is a pair. keys: neighbours in their order are alike; numbers: of pairs that take 32 bits, and of those that are
// too large.
KERNEL void key_scores(i64 begin, i64 end, const i64* query_offsets, const i64* target_offsets, i64* keys, u64* numbers,
                       i64 most_cells, i32 mode, COMPARISON_ARGUMENTS) {
    Pairs pairs = {nullptr, nullptr, query_offsets, target_offsets};
    FOR_EACH(pair, begin, end) {
        i64 rows = pairs.query_length(pair), columns = pairs.target_length(pair);
        i64 kind = class_of(rows, columns, most_cells, (Mode)mode, COMPARISON);
        if (kind) atomic_add(numbers + (kind == TOO_LARGE), 1);
        keys[pair] = kind | (rows + ROWS - 1) / ROWS << 32 | columns;
    }
}

// An item is a pair whose end is known. shifts, widths: of its frame.
KERNEL void key_paths(i64 begin, i64 end, const i64* query_offsets, const i64* target_offsets, const i32* scores,
                      const i64* query_ends, const i64* target_ends, i32* shifts, i32* widths, i64* keys, i64 most_cells,
                      i32 mode, COMPARISON_ARGUMENTS) {
    Pairs pairs = {nullptr, nullptr, query_offsets, target_offsets};
    FOR_EACH(pair, begin, end) {
        Reach reach = {(i32)query_ends[pair], (i32)target_ends[pair], mode == GLOBAL, COMPARISON};
        Diagonals diagonals = reach.diagonals(scores[pair]);
        shifts[pair] = diagonals.low + 1;
        widths[pair] = diagonals.high - diagonals.low + 1;
        i64 kind = class_of(pairs.query_length(pair), pairs.target_length(pair), most_cells, (Mode)mode, COMPARISON);
        keys[pair] = kind | (i64)(widths[pair] / ROWS) << 32 | reach.query_end;
    }
}

// An item is a block of an order of `count` pairs. bytes: of its scratch memory.
#define FRAME_SCORES(name, Lane)                                                                                        \
    KERNEL void name(i64 begin, i64 end, const i64* query_offsets, const i64* target_offsets, const i64* order,         \
                     Frame* frames, i64* bytes, i64 count) {                                                            \
        Pairs pairs = {nullptr, nullptr, query_offsets, target_offsets};                                                \
        const i64 size = GROUP_WIDTH * Lane::width;                                                                     \
        FOR_EACH(block, begin, end) {                                                                                   \
            Frame frame = {0, 0, 0, Frame::UNBOUNDED};                                                                  \
            for (i64 i = block * size; i < minimum((block + 1) * size, count); ++i) {                                   \
                frame.rows = maximum(frame.rows, pairs.query_length(order[i]));                                         \
                frame.columns = maximum(frame.columns, pairs.target_length(order[i]) + 1);                              \
            }                                                                                                           \
            frames[block] = frame;                                                                                      \
            bytes[block] = Columns<Lane>::size(frame.columns) * (i64)sizeof(Lane);                                      \
        }                                                                                                               \
    }

FRAME_SCORES(frame_scores_16, Narrow)
FRAME_SCORES(frame_scores_32, Wide)

#define FRAME_PATHS(name, Lane)                                                                                         \
    KERNEL void name(i64 begin, i64 end, const i64* query_ends, const i64* target_ends, const i32* shifts,              \
                     const i32* widths, const i64* order, Frame* frames, i64* bytes, i64 count) {                       \
        const i64 size = GROUP_WIDTH * Lane::width;                                                                     \
        FOR_EACH(block, begin, end) {                                                                                   \
            Frame frame = {0, 0, Frame::UNBOUNDED, 0};                                                                  \
            for (i64 i = block * size; i < minimum((block + 1) * size, count); ++i) {                                   \
                i64 pair = order[i];                                                                                    \
                frame.rows = maximum(frame.rows, (i32)query_ends[pair]);                                                \
                frame.columns = maximum(frame.columns, (i32)target_ends[pair] - shifts[pair] + 1);                      \
                frame.left = minimum(frame.left, -shifts[pair]);                                                        \
                frame.width = maximum(frame.width, widths[pair]);                                                       \
            }                                                                                                           \
            frames[block] = frame;                                                                                      \
            i64 words = Columns<Lane>::size(frame.columns);                                                             \
            bytes[block] = (words + Directions<Lane>::size(frame.strips(), frame.most_steps())) * (i64)sizeof(Lane);    \
        }                                                                                                               \
    }

FRAME_PATHS(frame_paths_16, Narrow)
FRAME_PATHS(frame_paths_32, Wide)

// An item is a group of the blocks from first_block on, in an order of `count` pairs.
#define SCORE_PAIRS(name, Lane)                                                                                         \
    KERNEL void name(i64 begin, i64 end, PAIR_ARGUMENTS, const i64* order, const Frame* frames, const i64* block_ends,  \
                     u8* scratch, i32* scores, i64* query_ends, i64* target_ends, i64 first_block, i64 count, i32 mode, \
                     COMPARISON_ARGUMENTS) {                                                                            \
        Pairs pairs = PAIRS;                                                                                            \
        FOR_EACH(item, begin, end) {                                                                                    \
            i64 number = first_block * GROUP_WIDTH + item, block = number / GROUP_WIDTH;                                \
            Lane* memory = block_memory<Lane>(scratch, block_ends, first_block, block) + number % GROUP_WIDTH;          \
            auto group = Group<Lane>::of(pairs, order, number, count);                                                  \
            Frame frame = frames[block];                                                                                \
            End found[Lane::width];                                                                                     \
            i32 never = never_of(group, pairs, (Mode)mode, COMPARISON);                                                 \
            score_group(group, frame, memory, (Mode)mode, COMPARISON, never, found);                                    \
            for (i32 lane = 0; lane < Lane::width; ++lane) {                                                            \
                i64 pair = group.pairs[lane];                                                                           \
                scores[pair] = found[lane].score;                                                                       \
                query_ends[pair] = found[lane].query;                                                                   \
                target_ends[pair] = found[lane].target;                                                                 \
            }                                                                                                           \
        }                                                                                                               \
    }

SCORE_PAIRS(score_pairs_16, Narrow)
SCORE_PAIRS(score_pairs_32, Wide)

// Where the moves of a pair begin: sixteen a word, and no word has moves of two pairs.
HOST_DEVICE i64 first_word(const Pairs& pairs, i64 pair) {
    return (pairs.query_offsets[pair] + pairs.target_offsets[pair]) / 16 + pair;
}

// As SCORE_PAIRS. move_counts: of each pair; counts: its operations.
#define TRACE_PAIRS(name, Lane)                                                                                         \
    KERNEL void name(i64 begin, i64 end, PAIR_ARGUMENTS, const i32* scores, const i64* query_ends,                      \
                     const i64* target_ends, const i32* shifts, const i64* order, const Frame* frames,                  \
                     const i64* block_ends, u8* scratch, i64* query_starts, i64* target_starts, u32* moves,             \
                     i32* move_counts, i64* counts, i64 first_block, i64 count, i32 mode, COMPARISON_ARGUMENTS) {       \
        Pairs pairs = PAIRS;                                                                                            \
        FOR_EACH(item, begin, end) {                                                                                    \
            i64 number = first_block * GROUP_WIDTH + item, block = number / GROUP_WIDTH;                                \
            Lane* memory = block_memory<Lane>(scratch, block_ends, first_block, block) + number % GROUP_WIDTH;          \
            auto group = Group<Lane>::of(pairs, order, number, count);                                                  \
            i32 never = never_of(group, pairs, (Mode)mode, COMPARISON);                                                 \
            Frame frame = frames[block];                                                                                \
            for (i32 lane = 0; lane < Lane::width; ++lane) {                                                            \
                group.query_ends[lane] = (i32)query_ends[group.pairs[lane]];                                            \
                group.target_ends[lane] = (i32)target_ends[group.pairs[lane]];                                          \
                group.shifts[lane] = shifts[group.pairs[lane]];                                                         \
            }                                                                                                           \
            Lane* words = direct_group(group, frame, memory, (Mode)mode, COMPARISON, never);                            \
            for (i32 lane = 0; lane < Lane::width && number * Lane::width + lane < count; ++lane) {                     \
                i64 pair = group.pairs[lane];                                                                           \
                Moves made = {moves + first_word(pairs, pair), 0, 0, 0, 0};                                             \
                Walk<Lane> walk = {group, frame, words, lane, group.query_ends[lane], group.target_ends[lane]};         \
                walk.run(made, scores[pair], (Mode)mode, COMPARISON);                                                   \
                made.finish();                                                                                          \
                query_starts[pair] = walk.i;                                                                            \
                target_starts[pair] = walk.j;                                                                           \
                move_counts[pair] = made.count;                                                                         \
                counts[pair] = made.runs;                                                                               \
            }                                                                                                           \
        }                                                                                                               \
    }

TRACE_PAIRS(trace_pairs_16, Narrow)
TRACE_PAIRS(trace_pairs_32, Wide)

// An item is a pair: its moves as operations, from its start.
KERNEL void fill_operations(i64 begin, i64 end, const i64* query_offsets, const i64* target_offsets, const u32* moves,
                            const i32* move_counts, const i64* counts, const i64* operation_ends, u32* operations) {
    Pairs pairs = {nullptr, nullptr, query_offsets, target_offsets};
    FOR_EACH(pair, begin, end) {
        const u32* words = moves + first_word(pairs, pair);
        u32* next = operations + operation_ends[pair] - counts[pair];
        u32 run = 0, last = 0;
        for (i32 i = move_counts[pair] - 1; i >= 0; --i) {
            u32 move = words[i / 16] >> 2 * (i % 16) & 3;
            if (run && move != last) *next++ = run << 4 | operation_of(last), run = 0;
            last = move;
            ++run;
        }
        if (run) *next = run << 4 | operation_of(last);
    }
}
