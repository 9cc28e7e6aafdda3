// Batches of pairs: score and end of every alignment first, then its path. Pairs are sorted so that neighbours have
// similar sizes. A thread aligns a group of Lane::width pairs. The groups of a warp form a block with one band
// and scratch memory (pair_schedule.cu).
#pragma once
#include "pairwise/pair_traceback.cuh"
#include "pairwise/pair_scores.cuh"

// Sorted pairs and their blocks.
struct Blocks {
    const u32* order OF(count);
    const BlockBand* bands OF(blocks);
    const i64* memory_ends OF(blocks);  // end of each block's scratch memory; the first block starts at 0
    i64 count;                          // number of pairs
};

// The end and the score of each pair's alignment.
struct AlignmentEnds {
    i32* scores OF(pairs);
    i64* query_ends OF(pairs);
    i64* target_ends OF(pairs);
};

// The path of each pair's alignment.
struct AlignmentPaths {
    i64* query_starts OF(pairs);
    i64* target_starts OF(pairs);
    u32* moves OF(any);  // each pair starts at first_word
    i32* move_counts OF(pairs);
    i64* run_counts OF(pairs);  // CIGAR operations
};

// Return a score below any H on an optimal path of two sequences of these lengths, for cells outside the matrix.
HOST_DEVICE i64 unreachable_score(i64 query_length, i64 target_length, Mode mode, const BaseScheme& scheme) {
    i64 lowest = mode == LOCAL ? 0 : scheme.gap_open + query_length * scheme.gap_extend;
    if (mode == GLOBAL) lowest += scheme.gap_open + target_length * scheme.gap_extend;
    return -lowest - scheme.highest + scheme.lowest - 2 * scheme.first_gap();
}

// Return a score that is unreachable for all pairs of a group.
template <class Lane> HOST_DEVICE i32 min_unreachable_score(
        const Group<Lane>& group, const Pairs& pairs, Mode mode, const BaseScheme& scheme) {
    i64 unreachable = 0;
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        i64 pair = group.pairs[lane];
        unreachable = minimum(
                unreachable, unreachable_score(pairs.queries.length(pair), pairs.targets.length(pair), mode, scheme));
    }
    return (i32)unreachable;
}

// Return the index of the first word of a pair's moves; a word has sixteen moves of one pair.
HOST_DEVICE i64 first_word(const Pairs& pairs, i64 pair) {
    return (pairs.queries.offsets[pair] + pairs.targets.offsets[pair]) / 16 + pair;
}
// Return the scratch memory of group `number`, in a launch that starts at block first_block.
template <class Lane> HOST_DEVICE Lane* scratch_of(u8* scratch, const Blocks& blocks, i64 first_block, i64 number) {
    i64 block = number / WARP_WIDTH, start = block ? blocks.memory_ends[block - 1] : 0;
    i64 before = first_block ? blocks.memory_ends[first_block - 1] : 0;
    return aligned<Lane>(scratch) + (start - before) / (i64)sizeof(Lane) + number % WARP_WIDTH;
}

// Write score and end of each pair of group `number` to `ends`. memory: scratch of the group.
template <class Lane, class Scheme> HOST_DEVICE void score_pairs(const Pairs& pairs, const Scheme& scheme,
        const Blocks& blocks, Lane* memory, const AlignmentEnds& ends, i64 number, Mode mode) {
    auto group = Group<Lane>::of(pairs, blocks.order, number, blocks.count);
    BlockBand band = blocks.bands[number / WARP_WIDTH];
    End found[Lane::width];
    score_group(group, band, memory, mode, scheme, min_unreachable_score(group, pairs, mode, scheme), found);
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        i64 pair = group.pairs[lane];
        ends.scores[pair] = found[lane].score;
        ends.query_ends[pair] = found[lane].query;
        ends.target_ends[pair] = found[lane].target;
    }
}

// Write the path of each pair of group `number` to `paths`. ends, shifts: by pair (key_paths); memory: scratch.
template <class Lane, class Scheme> HOST_DEVICE void trace_pairs(const Pairs& pairs, const Scheme& scheme,
        const Blocks& blocks, Lane* memory, const AlignmentEnds& ends, const i32* shifts, const AlignmentPaths& paths,
        i64 number, Mode mode) {
    auto group = Group<Lane>::of(pairs, blocks.order, number, blocks.count);
    i32 unreachable = min_unreachable_score(group, pairs, mode, scheme);
    BlockBand band = blocks.bands[number / WARP_WIDTH];
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        group.query_ends[lane] = (i32)ends.query_ends[group.pairs[lane]];
        group.target_ends[lane] = (i32)ends.target_ends[group.pairs[lane]];
        group.shifts[lane] = shifts[group.pairs[lane]];
    }
    Lane* words = store_directions(group, band, memory, mode, scheme, unreachable);
    for (i32 lane = 0; lane < Lane::width && number * Lane::width + lane < blocks.count; ++lane) {
        i64 pair = group.pairs[lane];
        Moves moves = {paths.moves + first_word(pairs, pair), 0, 0, 0, 0};
        Traceback<Lane> traceback = {group, band, words, lane, group.query_ends[lane], group.target_ends[lane]};
        traceback.run(moves, ends.scores[pair], mode, scheme);
        moves.finish();
        paths.query_starts[pair] = traceback.i;
        paths.target_starts[pair] = traceback.j;
        paths.move_counts[pair] = moves.count;
        paths.run_counts[pair] = moves.runs;
    }
}

// An item is a group of pairs, counted from first_block. The including file defines Scheme.
#define SCORE_PAIRS(name, Lane)                                                                                       \
    KERNEL void name(Items items, Pairs pairs, Scheme scheme, Blocks blocks, u8* scratch OF(any), AlignmentEnds ends, \
            i64 first_block, i32 mode) {                                                                              \
        FOR_EACH(item, items) {                                                                                       \
            i64 number = first_block * WARP_WIDTH + item;                                                             \
            Lane* memory = scratch_of<Lane>(scratch, blocks, first_block, number);                                    \
            score_pairs(pairs, scheme, blocks, memory, ends, number, (Mode)mode);                                     \
        }                                                                                                             \
    }

// An item is a group of pairs whose ends are known.
#define TRACE_PAIRS(name, Lane)                                                                                  \
    KERNEL void name(Items items, Pairs pairs, Scheme scheme, Blocks blocks, AlignmentEnds ends,                 \
            const i32* shifts OF(pairs), u8* scratch OF(any), AlignmentPaths paths, i64 first_block, i32 mode) { \
        FOR_EACH(item, items) {                                                                                  \
            i64 number = first_block * WARP_WIDTH + item;                                                        \
            Lane* memory = scratch_of<Lane>(scratch, blocks, first_block, number);                               \
            trace_pairs(pairs, scheme, blocks, memory, ends, shifts, paths, number, (Mode)mode);                 \
        }                                                                                                        \
    }
