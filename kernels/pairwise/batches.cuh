// Batches of pairs: the score and the end of every alignment, then its path. Pairs come in an order in which neighbours are
// alike. Lane::width of them are a group, which is what a thread takes; the groups of a warp are a block, which has a frame
// and scratch memory (orders.cu).
#pragma once
#include "pairwise/pair_paths.cuh"
#include "pairwise/pair_scores.cuh"

// Less than any H that a path needs.
HOST_DEVICE i64 never_of(i64 query_length, i64 target_length, Mode mode, const Limits& limits) {
    i64 lowest = mode == LOCAL ? 0 : limits.gap_open + query_length * limits.gap_extend;
    if (mode == GLOBAL) lowest += limits.gap_open + target_length * limits.gap_extend;
    return -lowest - limits.highest + limits.lowest - 2 * limits.first_gap();
}

template <class Lane>
HOST_DEVICE i32 never_of(const Group<Lane>& group, const Pairs& pairs, Mode mode, const Limits& limits) {
    i64 never = 0;
    for (i32 lane = 0; lane < Lane::width; ++lane) {
        i64 pair = group.pairs[lane];
        never = minimum(never, never_of(pairs.query_length(pair), pairs.target_length(pair), mode, limits));
    }
    return (i32)never;
}

// Where the moves of a pair begin: sixteen a word, and no word has moves of two pairs.
HOST_DEVICE i64 first_word(const Pairs& pairs, i64 pair) {
    return (pairs.query_offsets[pair] + pairs.target_offsets[pair]) / 16 + pair;
}

// An item is a group of the blocks from first_block on, in an order of `count` pairs; the header of
// a scheme says what SCHEME is.
#define SCORE_PAIRS(name, Lane)                                                                                        \
    KERNEL void name(i64 begin, i64 end, PAIR_ARGUMENTS, const i64* order, const Frame* frames, const i64* block_ends, \
                     u8* scratch, i32* scores, i64* query_ends, i64* target_ends, i64 first_block, i64 count,          \
                     i32 mode, SCHEME_ARGUMENTS) {                                                                     \
        Pairs pairs = PAIRS;                                                                                           \
        FOR_EACH(item, begin, end) {                                                                                   \
            i64 number = first_block * GROUP_WIDTH + item, block = number / GROUP_WIDTH;                               \
            Lane* memory = block_memory<Lane>(scratch, block_ends, first_block, block) + number % GROUP_WIDTH;         \
            auto group = Group<Lane>::of(pairs, order, number, count);                                                 \
            Frame frame = frames[block];                                                                               \
            End found[Lane::width];                                                                                    \
            i32 never = never_of(group, pairs, (Mode)mode, SCHEME);                                                    \
            score_group(group, frame, memory, (Mode)mode, SCHEME, never, found);                                       \
            for (i32 lane = 0; lane < Lane::width; ++lane) {                                                           \
                i64 pair = group.pairs[lane];                                                                          \
                scores[pair] = found[lane].score;                                                                      \
                query_ends[pair] = found[lane].query;                                                                  \
                target_ends[pair] = found[lane].target;                                                                \
            }                                                                                                          \
        }                                                                                                              \
    }

// As SCORE_PAIRS. move_counts: of each pair; counts: its operations.
#define TRACE_PAIRS(name, Lane)                                                                                 \
    KERNEL void name(i64 begin, i64 end, PAIR_ARGUMENTS, const i32* scores, const i64* query_ends,              \
                     const i64* target_ends, const i32* shifts, const i64* order, const Frame* frames,          \
                     const i64* block_ends, u8* scratch, i64* query_starts, i64* target_starts, u32* moves,     \
                     i32* move_counts, i64* counts, i64 first_block, i64 count, i32 mode, SCHEME_ARGUMENTS) {   \
        Pairs pairs = PAIRS;                                                                                    \
        FOR_EACH(item, begin, end) {                                                                            \
            i64 number = first_block * GROUP_WIDTH + item, block = number / GROUP_WIDTH;                        \
            Lane* memory = block_memory<Lane>(scratch, block_ends, first_block, block) + number % GROUP_WIDTH;  \
            auto group = Group<Lane>::of(pairs, order, number, count);                                          \
            i32 never = never_of(group, pairs, (Mode)mode, SCHEME);                                             \
            Frame frame = frames[block];                                                                        \
            for (i32 lane = 0; lane < Lane::width; ++lane) {                                                    \
                group.query_ends[lane] = (i32)query_ends[group.pairs[lane]];                                    \
                group.target_ends[lane] = (i32)target_ends[group.pairs[lane]];                                  \
                group.shifts[lane] = shifts[group.pairs[lane]];                                                 \
            }                                                                                                   \
            Lane* words = direct_group(group, frame, memory, (Mode)mode, SCHEME, never);                        \
            for (i32 lane = 0; lane < Lane::width && number * Lane::width + lane < count; ++lane) {             \
                i64 pair = group.pairs[lane];                                                                   \
                Moves made = {moves + first_word(pairs, pair), 0, 0, 0, 0};                                     \
                Walk<Lane> walk = {group, frame, words, lane, group.query_ends[lane], group.target_ends[lane]}; \
                walk.run(made, scores[pair], (Mode)mode, SCHEME);                                               \
                made.finish();                                                                                  \
                query_starts[pair] = walk.i;                                                                    \
                target_starts[pair] = walk.j;                                                                   \
                move_counts[pair] = made.count;                                                                 \
                counts[pair] = made.runs;                                                                       \
            }                                                                                                   \
        }                                                                                                       \
    }
