// Sweeps of the matrix of two sequences: the scores at its borders and the first of its best cells, or where every cell's
// scores come from.
#include "sweep.cuh"

#define REGION_ARGUMENTS                                                                                                \
    const u8 *query, const u8 *target, i32 *row_h, i32 *row_f, const i32 *left_h, const i32 *left_e, i32 *rows_h,      \
        i32 *rows_f, i32 *columns_h, i32 *columns_e, u16 *steps, i32 *counter, i32 *progress, i32 *best, Found *found, \
        u64 *skipped, i32 rows, i32 columns, i32 strip_step, i32 column_step, i32 rows_below, i32 prunes
#define REGION                                                                                                          \
    Region {                                                                                                            \
        query, target, row_h, row_f, left_h, left_e, rows_h, rows_f, columns_h, columns_e, steps, rows, columns,        \
            strip_step, column_step, rows_below                                                                         \
    }

// An item is a strip of the region's rows; which one, its turn decides. found: of each strip the first of its best cells,
// with a score of 0 if no other wave's is worse. row_h and row_f: of the row above the region, and then of its last row.
#define SWEEP(name, Lane, LOCALLY, STEPS)                                                                              \
    KERNEL void RESIDENT(4) name(i64 begin, i64 end, REGION_ARGUMENTS, COMPARISON_ARGUMENTS) {                                     \
        Region region = REGION;                                                                                        \
        Meeting meeting = {counter, progress, best, prunes != 0};                                                      \
        FOR_EACH_GROUP(item, begin, end)                                                                               \
            sweep_strip<Lane, STEPS ? STEP_ROWS : WAVE_ROWS, LOCALLY, STEPS>(region, COMPARISON, meeting, found, skipped);                 \
    }

SWEEP(sweep_local_16_bits, Narrow, true, false)
SWEEP(sweep_local_32_bits, Single, true, false)
SWEEP(sweep_whole_16_bits, Narrow, false, false)
SWEEP(sweep_whole_32_bits, Single, false, false)
SWEEP(step_local_16_bits, Narrow, true, true)
SWEEP(step_local_32_bits, Single, true, true)
SWEEP(step_whole_16_bits, Narrow, false, true)
SWEEP(step_whole_32_bits, Single, false, true)
