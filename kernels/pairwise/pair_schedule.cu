// Sort keys, bands and scratch sizes for batches.cuh, for any scheme, and the conversion of moves to operations.
#include "pairwise/batches.cuh"

// The highest bits of a pair's key: pairs with 16-bit scores come first, then 32-bit scores, then pairs too large.
const i64 IN_32_BITS = (i64)1 << 60, TOO_LARGE = (i64)1 << 61;
// Return true if all scores of a pair fit in 16 bits. Cells outside the matrix start at the unreachable score and may
// lose the cost of gaps once more.
HOST_DEVICE bool fits_16_bits(i64 query_length, i64 target_length, Mode mode, const BaseScheme& scheme) {
    i64 max_score = scheme.highest * minimum(query_length, target_length);
    return max_score - 2 * unreachable_score(query_length, target_length, mode, scheme) <= 32000 &&
            target_length <= 32000;
}

const i64 MARGIN = 24;  // rows added to a pair to account for the memory of its columns
// Return the high bits of a pair's key: 0 for 16-bit scores, else IN_32_BITS, or TOO_LARGE above max_cells.
HOST_DEVICE i64 size_class(i64 query_length, i64 target_length, i64 max_cells, Mode mode, const BaseScheme& scheme) {
    if ((query_length + MARGIN) * (target_length + MARGIN) > max_cells) return TOO_LARGE;
    return fits_16_bits(query_length, target_length, mode, scheme) ? 0 : IN_32_BITS;
}

// Write the key of each pair (item), to sort pairs by size: size_class | strips << 32 | columns. counts: incremented
// for pairs with 32-bit scores and for pairs that are too large.
KERNEL void key_scores(
        Items items, Pairs pairs, BaseScheme scheme, i64* keys OF(pairs), u64* counts OF(2), i64 max_cells, i32 mode) {
    FOR_EACH(pair, items) {
        i64 rows = pairs.queries.length(pair), columns = pairs.targets.length(pair);
        i64 kind = size_class(rows, columns, max_cells, (Mode)mode, scheme);
        if (kind) atomic_add(counts + (kind == TOO_LARGE), 1);
        keys[pair] = kind | (rows + ROWS - 1) / ROWS << 32 | columns;
    }
}

// Write the key of each pair whose end is known: size_class | strips of the width << 32 | rows. shifts, widths: the
// band of its path, in which column c is column c + shift of the matrix.
KERNEL void key_paths(Items items, Pairs pairs, BaseScheme scheme, AlignmentEnds ends, i32* shifts OF(pairs),
        i32* widths OF(pairs), i64* keys OF(pairs), i64 max_cells, i32 mode) {
    FOR_EACH(pair, items) {
        DiagonalBound reach = {(i32)ends.query_ends[pair], (i32)ends.target_ends[pair], mode == GLOBAL, scheme};
        Diagonals diagonals = reach.diagonals(ends.scores[pair]);
        shifts[pair] = diagonals.low + 1;
        widths[pair] = diagonals.high - diagonals.low + 1;
        i64 rows = pairs.queries.length(pair), columns = pairs.targets.length(pair);
        i64 kind = size_class(rows, columns, max_cells, (Mode)mode, scheme);
        keys[pair] = kind | (i64)(widths[pair] / ROWS) << 32 | reach.query_end;
    }
}

// Return an unbounded band that holds the matrices of the `count` pairs of a block.
HOST_DEVICE BlockBand score_band(const Pairs& pairs, const u32* order, i64 count) {
    BlockBand band = {0, 0, 0, UNBOUNDED};
    for (i64 i = 0; i < count; ++i) {
        band.rows = maximum(band.rows, pairs.queries.length(order[i]));
        band.columns = maximum(band.columns, pairs.targets.length(order[i]) + 1);
    }
    return band;
}

// Return the band that holds the paths of the `count` pairs of a block. The left end belongs to the largest shift.
// (ptxas of CUDA 13.0 miscompiles the minimum of negated shifts.)
HOST_DEVICE BlockBand path_band(
        const AlignmentEnds& ends, const i32* shifts, const i32* widths, const u32* order, i64 count) {
    BlockBand band = {0, 0, 0, 0};
    i32 max_shift = -UNBOUNDED;
    for (i64 i = 0; i < count; ++i) {
        i64 pair = order[i];
        band.rows = maximum(band.rows, (i32)ends.query_ends[pair]);
        band.columns = maximum(band.columns, (i32)ends.target_ends[pair] - shifts[pair] + 1);
        max_shift = maximum(max_shift, shifts[pair]);
        band.width = maximum(band.width, widths[pair]);
    }
    band.left = -max_shift;
    return band;
}

// An item is a block of the `count` sorted pairs. bytes: size of its scratch memory.
#define SCORE_BANDS(name, Lane)                                                                        \
    KERNEL void name(Items items, Pairs pairs, const u32* order OF(count), BlockBand* bands OF(items), \
            i64* bytes OF(items), i64 count) {                                                         \
        const i64 size = WARP_WIDTH * Lane::width;                                                     \
        FOR_EACH(block, items) {                                                                       \
            i64 first = block * size;                                                                  \
            BlockBand band = score_band(pairs, order + first, minimum(size, count - first));           \
            bands[block] = band;                                                                       \
            bytes[block] = StripColumns<Lane>::size(band.columns) * (i64)sizeof(Lane);                 \
        }                                                                                              \
    }

SCORE_BANDS(score_bands_16, Lanes16)
SCORE_BANDS(score_bands_32, Lanes32)

#define PATH_BANDS(name, Lane)                                                                                    \
    KERNEL void name(Items items, AlignmentEnds ends, const i32* shifts OF(pairs), const i32* widths OF(pairs),   \
            const u32* order OF(count), BlockBand* bands OF(items), i64* bytes OF(items), i64 count) {            \
        const i64 size = WARP_WIDTH * Lane::width;                                                                \
        FOR_EACH(block, items) {                                                                                  \
            i64 first = block * size;                                                                             \
            BlockBand band = path_band(ends, shifts, widths, order + first, minimum(size, count - first));        \
            bands[block] = band;                                                                                  \
            i64 words = StripColumns<Lane>::size(band.columns);                                                   \
            bytes[block] = (words + Directions<Lane>::size(band.strips(), band.max_steps())) * (i64)sizeof(Lane); \
        }                                                                                                         \
    }

PATH_BANDS(path_bands_16, Lanes16)
PATH_BANDS(path_bands_32, Lanes32)

// Write the CIGAR of each pair (item), from the start of the alignment. operation_ends: inclusive sum of run_counts.
KERNEL void fill_operations(
        Items items, Pairs pairs, AlignmentPaths paths, const i64* operation_ends OF(pairs), u32* operations OF(any)) {
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
