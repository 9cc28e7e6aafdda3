// Scan a database: the best score of a query with every subject (Manavski and Valle 2008; Ligowski and Rudnicki 2009).
// Subjects are sorted by decreasing length; neighbours share the lanes of a thread.
#include "database/scan_lanes.cuh"

// Interleave the letters of a group of subjects (an item), those from item * Lanes16::width on, as letter_index says.
// starts, lengths: where a subject is in `codes`; columns: the first column of each group in `letters`.
KERNEL void interleave(WarpItems items, const u8* codes OF(any), const i64* starts OF(subjects),
        const i32* lengths OF(subjects), const i64* columns OF(items + 1), u8* letters OF(any), i64 subjects) {
    FOR_EACH(item, items) {
        i64 first = item * Lanes16::width;
        for (i64 column = warp_lane(); column < columns[item + 1] - columns[item]; column += WARP_WIDTH) {
            for (i32 lane = 0; lane < Lanes16::width; ++lane) {
                i64 subject = first + lane;
                bool exists = subject < subjects && column < lengths[subject];
                letters[letter_index(columns[item] + column, lane)] =
                        exists ? codes[starts[subject] + column] : NO_CODE;
            }
        }
    }
}

// Ranges of the columns of groups.
struct ColumnRanges {
    const i64* starts OF(count);         // first column of each range
    const i32* columns OF(count);        // number of columns
    const i32* groups OF(count);         // group of each range
    const i64* border_starts OF(count);  // ascending
    i64 count;
};

// The range of a thread: an item is a warp, in which every `width` threads share a range. There may be none.
struct ThreadRange {
    i64 number;
    i32 columns, group;
    bool exists;
    HOST_DEVICE static ThreadRange of(const ColumnRanges& ranges, i64 item, i32 width) {
        i64 number = item * (WARP_WIDTH / width) + warp_lane() / width;
        bool exists = number < ranges.count;
        if (!exists) number = ranges.count - 1;
        return ThreadRange{number, exists ? ranges.columns[number] : 0, ranges.groups[number], exists};
    }
};

// Return the negative costs of a gap's first and of a further letter, the same in all lanes.
template <class Lane> HOST_DEVICE GapCosts<Lane> gap_costs(const Query& query) {
    return GapCosts<Lane>{Lane::all(-query.gap_open - query.gap_extend), Lane::all(-query.gap_extend)};
}
// An item is a warp. scores: raised to the best score of every subject. resumes: ranges continue from their borders.
#define SCORE(name, Lane, CELLS)                                                                                     \
    KERNEL void MIN_BLOCKS(4) name(WarpItems items, Query query, const u8* letters OF(any), ColumnRanges ranges,     \
            u8* borders OF(any), i32* scores OF(any), i32 width, bool resumes) {                                     \
        GapCosts<Lane> gaps = gap_costs<Lane>(query);                                                                \
        FOR_EACH(item, items) {                                                                                      \
            ThreadRange range = ThreadRange::of(ranges, item, width);                                                \
            Border<Lane>* border =                                                                                   \
                    aligned<Border<Lane>>(borders) + border_index(ranges.border_starts, range.number, query.rows);   \
            const u8* range_letters = letters + ranges.starts[range.number] * Lane::width;                           \
            Lane best =                                                                                              \
                    sweep<Lane, CELLS>(query, range_letters, range.columns, width, border, resumes, gaps, NoEnds{}); \
            if (!range.exists || warp_lane() % width) continue;                                                      \
            for (i32 lane = 0; lane < Lane::width; ++lane)                                                           \
                atomic_max(scores + (i64)range.group * Lane::width + lane, best.get(lane));                          \
        }                                                                                                            \
    }

SCORE(score_8, Lanes16, 8)
SCORE(score_12, Lanes16, 12)
SCORE(score_16, Lanes16, 16)
SCORE(score_20, Lanes16, 20)
SCORE(score_24, Lanes16, 24)
SCORE(score_28, Lanes16, 28)
SCORE(score_32, Lanes16, 32)
SCORE(score_broad, Lanes32x2, 8)

// As SCORE, with known scores. origins: first column of each group. ends: updated by minimum and maximum.
#define FIND_ENDS(name, Lane)                                                                                          \
    KERNEL void MIN_BLOCKS(4) name(WarpItems items, Query query, const u8* letters OF(any), ColumnRanges ranges,       \
            const i64* origins OF(any), const i32* scores OF(subjects), u8* borders OF(any), EndCells ends, i32 width, \
            bool resumes) {                                                                                            \
        GapCosts<Lane> gaps = gap_costs<Lane>(query);                                                                  \
        FOR_EACH(item, items) {                                                                                        \
            ThreadRange range = ThreadRange::of(ranges, item, width);                                                  \
            Border<Lane>* border =                                                                                     \
                    aligned<Border<Lane>>(borders) + border_index(ranges.border_starts, range.number, query.rows);     \
            i64 start = ranges.starts[range.number];                                                                   \
            Ends<Lane> found = {                                                                                       \
                    Lane::all(0), (i32)(start - origins[range.group]), ends.from((i64)range.group * Lane::width)};     \
            for (i32 lane = 0; lane < Lane::width; ++lane)                                                             \
                found.scores.set(lane, scores[(i64)range.group * Lane::width + lane]);                                 \
            sweep<Lane, 8>(query, letters + start * Lane::width, range.columns, width, border, resumes, gaps, found);  \
        }                                                                                                              \
    }

FIND_ENDS(find_ends_8, Lanes16)
FIND_ENDS(find_ends_broad, Lanes32x2)
