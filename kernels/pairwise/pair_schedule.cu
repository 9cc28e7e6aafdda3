// How pairs are ordered for batches.cuh and what their blocks take, whatever the scheme; and their moves as operations.
#include "pairwise/batches.cuh"

// The highest bits of a pair's key: behind the pairs that 16 bits suffice for come those that take 32, and last those
// that are too large.
const i64 IN_32_BITS = (i64)1 << 60, TOO_LARGE = (i64)1 << 61;

// Cells outside the matrix start there and lose what gaps cost, once more.
HOST_DEVICE bool fits_16_bits(i64 query_length, i64 target_length, Mode mode, const Limits& limits) {
    i64 most = limits.highest * minimum(query_length, target_length);
    return most - 2 * never_of(query_length, target_length, mode, limits) <= 32000 && target_length <= 32000;
}

// What the columns of a pair take is as if it had so many rows more.
const i64 MARGIN = 24;

HOST_DEVICE i64 class_of(i64 query_length, i64 target_length, i64 most_cells, Mode mode, const Limits& limits) {
    if ((query_length + MARGIN) * (target_length + MARGIN) > most_cells) return TOO_LARGE;
    return fits_16_bits(query_length, target_length, mode, limits) ? 0 : IN_32_BITS;
}

// An item is a pair. keys: neighbours in their order are alike; numbers: of pairs that take 32 bits, and of those that are
// too large.
KERNEL void key_scores(Items items, Pairs pairs, Limits limits, i64* keys OF(pairs), u64* numbers OF(2), i64 most_cells,
                       i32 mode) {
    FOR_EACH(pair, items) {
        i64 rows = pairs.queries.length(pair), columns = pairs.targets.length(pair);
        i64 kind = class_of(rows, columns, most_cells, (Mode)mode, limits);
        if (kind) atomic_add(numbers + (kind == TOO_LARGE), 1);
        keys[pair] = kind | (rows + ROWS - 1) / ROWS << 32 | columns;
    }
}

// An item is a pair whose end is known. shifts, widths: of its frame.
KERNEL void key_paths(Items items, Pairs pairs, Limits limits, AlignmentEnds ends, i32* shifts OF(pairs),
                      i32* widths OF(pairs), i64* keys OF(pairs), i64 most_cells, i32 mode) {
    FOR_EACH(pair, items) {
        Reach reach = {(i32)ends.query_ends[pair], (i32)ends.target_ends[pair], mode == GLOBAL, limits};
        Diagonals diagonals = reach.diagonals(ends.scores[pair]);
        shifts[pair] = diagonals.low + 1;
        widths[pair] = diagonals.high - diagonals.low + 1;
        i64 rows = pairs.queries.length(pair), columns = pairs.targets.length(pair);
        i64 kind = class_of(rows, columns, most_cells, (Mode)mode, limits);
        keys[pair] = kind | (i64)(widths[pair] / ROWS) << 32 | reach.query_end;
    }
}

HOST_DEVICE Frame score_frame(const Pairs& pairs, const u32* order, i64 count) {
    Frame frame = {0, 0, 0, UNBOUNDED};
    for (i64 i = 0; i < count; ++i) {
        frame.rows = maximum(frame.rows, pairs.queries.length(order[i]));
        frame.columns = maximum(frame.columns, pairs.targets.length(order[i]) + 1);
    }
    return frame;
}

// The left end is that of the largest shift. (As the least of the negated shifts ptxas of CUDA 13.0 takes it wrongly, as it
// loses the sign of one of three.)
HOST_DEVICE Frame path_frame(const AlignmentEnds& ends, const i32* shifts, const i32* widths, const u32* order,
                             i64 count) {
    Frame frame = {0, 0, 0, 0};
    i32 most_shift = -UNBOUNDED;
    for (i64 i = 0; i < count; ++i) {
        i64 pair = order[i];
        frame.rows = maximum(frame.rows, (i32)ends.query_ends[pair]);
        frame.columns = maximum(frame.columns, (i32)ends.target_ends[pair] - shifts[pair] + 1);
        most_shift = maximum(most_shift, shifts[pair]);
        frame.width = maximum(frame.width, widths[pair]);
    }
    frame.left = -most_shift;
    return frame;
}

// An item is a block of an order of `count` pairs. bytes: of its scratch memory.
#define FRAME_SCORES(name, Lane)                                                                    \
    KERNEL void name(Items items, Pairs pairs, const u32* order OF(count), Frame* frames OF(items), \
                     i64* bytes OF(items), i64 count) {                                             \
        const i64 size = WARP_WIDTH * Lane::width;                                                  \
        FOR_EACH(block, items) {                                                                    \
            i64 first = block * size;                                                               \
            Frame frame = score_frame(pairs, order + first, minimum(size, count - first));          \
            frames[block] = frame;                                                                  \
            bytes[block] = StripColumns<Lane>::size(frame.columns) * (i64)sizeof(Lane);             \
        }                                                                                           \
    }

FRAME_SCORES(frame_scores_16, Narrow)
FRAME_SCORES(frame_scores_32, Wide)

#define FRAME_PATHS(name, Lane)                                                                                      \
    KERNEL void name(Items items, AlignmentEnds ends, const i32* shifts OF(pairs), const i32* widths OF(pairs),      \
                     const u32* order OF(count), Frame* frames OF(items), i64* bytes OF(items), i64 count) {         \
        const i64 size = WARP_WIDTH * Lane::width;                                                                   \
        FOR_EACH(block, items) {                                                                                     \
            i64 first = block * size;                                                                                \
            Frame frame = path_frame(ends, shifts, widths, order + first, minimum(size, count - first));             \
            frames[block] = frame;                                                                                   \
            i64 words = StripColumns<Lane>::size(frame.columns);                                                     \
            bytes[block] = (words + Directions<Lane>::size(frame.strips(), frame.most_steps())) * (i64)sizeof(Lane); \
        }                                                                                                            \
    }

FRAME_PATHS(frame_paths_16, Narrow)
FRAME_PATHS(frame_paths_32, Wide)

// An item is a pair: its moves as operations, from its start.
KERNEL void fill_operations(Items items, Pairs pairs, AlignmentPaths paths, const i64* operation_ends OF(pairs),
                            u32* operations OF(any)) {
    FOR_EACH(pair, items) {
        const u32* words = paths.moves + first_word(pairs, pair);
        u32* next = operations + operation_ends[pair] - paths.run_counts[pair];
        u32 run = 0, last = 0;
        for (i32 i = paths.move_counts[pair] - 1; i >= 0; --i) {
            u32 move = words[i / 16] >> 2 * (i % 16) & 3;
            if (run && move != last) *next++ = run << 4 | operation_of(last), run = 0;
            last = move;
            ++run;
        }
        if (run) *next = run << 4 | operation_of(last);
    }
}
