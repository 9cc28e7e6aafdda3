// Adjacent cells of the local alignment matrix in registers, which move along the matrix step by step, Lane::width
// matrices at once. On the GPU the cells are rows of the query and move along the subject; on the CPU they are columns
// of the subject and move along the query. The recurrence is symmetric.
//
//              across ->
//      along   h[0]  h[1]  h[2] ...        A gap along the direction of movement is stored per cell from step
//        |     h[0]  h[1]  h[2] ...        to step; a gap across it passes through the cells of a step.
//        v
#pragma once
#include "common/simd_lanes.cuh"

// Negative costs of the first letter of a gap, including its opening, and of a further letter.
template <class Lane> struct GapCosts {
    Lane first, further;
};

template <class Lane, i32 CELLS> struct Cells {
    Lane h[CELLS];          // the score of each cell's best alignment
    Lane gap_along[CELLS];  // the score of a gap that continues in the next step
    Lane best;
    // Scores outside the matrix are 0. For gaps this is too high, but not better than an empty alignment.
    HOST_DEVICE void start() {
        UNROLL for (i32 k = 0; k < CELLS; ++k)
            h[k] = gap_along[k] = Lane::all(0);
    }
    // before: score next to the first cell, in the step before. gap_across: score of a gap that enters at the first
    // cell; on return, of the gap that leaves the last cell.
    template <class Scores>
    HOST_DEVICE void step(const Scores& scores, Lane before, Lane& gap_across, const GapCosts<Lane>& gaps) {
        Lane last = Lane::all(0);
        UNROLL for (i32 k = 0; k < CELLS; ++k) {
            Lane ending = before + scores.at(k);
            Lane here = max3_or_zero(ending, gap_along[k], gap_across);
            Lane opened = here + gaps.first;
            before = h[k];
            h[k] = here;
            gap_along[k] = add_max(gap_along[k], gaps.further, opened);
            gap_across = add_max(gap_across, gaps.further, opened);
            // The best alignment ends with a pair of letters, so only these scores are compared.
            if (k % 2) best = max3(best, last, ending);
            last = ending;
        }
    }
};
