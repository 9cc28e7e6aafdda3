// A scan of a database: the best score of a query with every subject (Manavski and Valle 2008; Ligowski and Rudnicki 2009).
// Subjects of about the same length share the lanes of a group, the longest ones first.
#include "database/scan_lanes.cuh"

// An item is a group of subjects, those from item * Narrow::width on: their letters, interleaved. starts: where a subject
// begins in `codes`. columns: where a group begins in `letters`.
KERNEL void interleave(i64 begin, i64 end, const u8* codes, const i64* starts, const i32* lengths, const i64* columns,
                       u8* letters, i64 subjects) {
    FOR_EACH_GROUP(item, begin, end) {
        i64 first = item * Narrow::width;
        for (i64 column = group_lane(); column < columns[item + 1] - columns[item]; column += GROUP_WIDTH) {
            for (i32 lane = 0; lane < Narrow::width; ++lane) {
                i64 subject = first + lane;
                bool exists = subject < subjects && column < lengths[subject];
                letters[place_of(columns[item] + column, lane)] = exists ? codes[starts[subject] + column] : NO_LETTER;
            }
        }
    }
}

// An item is as many stretches of columns as go into a group of threads, `width` threads each. starts, columns: of a
// stretch; groups: whose it is. border_starts: of a stretch, ascending. scores: of every subject, the best one so far, is
// raised. goes_on: whether a stretch continues what its borders were left by.
#define SCORE(name, Lane, CELLS)                                                                                     \
    KERNEL void RESIDENT(4) name(i64 begin, i64 end, const u8* codes, const i32* matrix, const u8* letters,          \
                                 const i64* starts, const i32* columns, const i32* groups, const i64* border_starts, \
                                 u8* borders, i32* scores, i32 rows, i64 stretches, i32 width, i32 goes_on,          \
                                 i32 gap_open, i32 gap_extend) {                                                     \
        Query query = {codes, rows, matrix};                                                                         \
        GapCosts<Lane> gaps = {Lane::all(-gap_open - gap_extend), Lane::all(-gap_extend)};                           \
        FOR_EACH_GROUP(item, begin, end) {                                                                           \
            i64 stretch = item * (GROUP_WIDTH / width) + group_lane() / width;                                       \
            bool exists = stretch < stretches;                                                                       \
            stretch = exists ? stretch : stretches - 1;                                                              \
            Border<Lane>* own = aligned<Border<Lane>>(borders) + border_place(border_starts, stretch, rows);         \
            i32 count = exists ? columns[stretch] : 0;                                                               \
            const u8* own_letters = letters + starts[stretch] * Lane::width;                                         \
            Lane best = sweep<Lane, CELLS>(query, own_letters, count, width, own, goes_on, gaps, Unseen{});          \
            if (!exists || group_lane() % width) continue;                                                           \
            for (i32 lane = 0; lane < Lane::width; ++lane)                                                           \
                atomic_max(scores + (i64)groups[stretch] * Lane::width + lane, best.get(lane));                      \
        }                                                                                                            \
    }

SCORE(score_8, Narrow, 8)
SCORE(score_12, Narrow, 12)
SCORE(score_16, Narrow, 16)
SCORE(score_20, Narrow, 20)
SCORE(score_24, Narrow, 24)
SCORE(score_28, Narrow, 28)
SCORE(score_32, Narrow, 32)
SCORE(score_broad, Broad, 8)

// As SCORE, once the scores are known. origins: where each group's columns begin. firsts, last_rows and last_columns: of
// every subject, as Ends has them, are lowered and raised.
#define FIND_ENDS(name, Lane)                                                                                        \
    KERNEL void RESIDENT(4) name(i64 begin, i64 end, const u8* codes, const i32* matrix, const u8* letters,          \
                                 const i64* starts, const i32* columns, const i32* groups, const i64* border_starts, \
                                 u8* borders, const i64* origins, const i32* scores, u64* firsts, i32* last_rows,    \
                                 i32* last_columns, i32 rows, i64 stretches, i32 width, i32 goes_on, i32 gap_open,   \
                                 i32 gap_extend) {                                                                   \
        Query query = {codes, rows, matrix};                                                                         \
        GapCosts<Lane> gaps = {Lane::all(-gap_open - gap_extend), Lane::all(-gap_extend)};                           \
        FOR_EACH_GROUP(item, begin, end) {                                                                           \
            i64 stretch = item * (GROUP_WIDTH / width) + group_lane() / width;                                       \
            bool exists = stretch < stretches;                                                                       \
            stretch = exists ? stretch : stretches - 1;                                                              \
            Border<Lane>* own = aligned<Border<Lane>>(borders) + border_place(border_starts, stretch, rows);         \
            i32 count = exists ? columns[stretch] : 0;                                                               \
            i64 subject = (i64)groups[stretch] * Lane::width;                                                        \
            Ends<Lane> ends = {Lane::all(0), (i32)(starts[stretch] - origins[groups[stretch]]), firsts + subject,    \
                               last_rows + subject, last_columns + subject};                                         \
            for (i32 lane = 0; lane < Lane::width; ++lane) ends.scores.set(lane, scores[subject + lane]);            \
            sweep<Lane, 8>(query, letters + starts[stretch] * Lane::width, count, width, own, goes_on, gaps, ends);  \
        }                                                                                                            \
    }

FIND_ENDS(find_ends_8, Narrow)
FIND_ENDS(find_ends_broad, Broad)
