// Cells of a local alignment's matrix in registers, neighbours across, that move along the matrix together, a step at a
// time; Lane::width matrices at once. On the GPU the cells are rows of the query and go along the subject, on the CPU they
// are columns of the subject and go along the query: the recurrence is the same.
//
//              across ->
//      along   h[0]  h[1]  h[2] ...        A gap along the way is a score of each cell, kept from step to step; one
//        |     h[0]  h[1]  h[2] ...        across the way goes through the cells of a step.
//        v
#pragma once
#include "common/simd_lanes.cuh"

// Of a gap, negative: its first letter, with the opening, and a further one.
template <class Lane> struct GapCosts {
    Lane first, further;
};

template <class Lane, i32 CELLS> struct Cells {
    Lane h[CELLS];          // the score of each cell's best alignment
    Lane gap_along[CELLS];  // and of that which goes on with a gap in the next step
    Lane best;

    // Outside the matrix scores are 0. So are those of gaps there: too good, but no better than an empty alignment.
    HOST_DEVICE void start() {
        UNROLL for (i32 k = 0; k < CELLS; ++k)
            h[k] = gap_along[k] = Lane::all(0);
    }
    // before: the score beside the first cell, of the step before. through: that of a gap that comes from there in this step;
    // it leaves behind the last cell.
    template <class Scores>
    HOST_DEVICE void step(const Scores& scores, Lane before, Lane& gap_across, const GapCosts<Lane>& gaps) {
        Lane last = Lane::all(0);
        UNROLL for (i32 k = 0; k < CELLS; ++k) {
            Lane ending = before + scores.at(k);
            Lane here = largest_or_zero(ending, gap_along[k], gap_across);
            Lane opened = here + gaps.first;
            before = h[k];
            h[k] = here;
            gap_along[k] = add_larger(gap_along[k], gaps.further, opened);
            gap_across = add_larger(gap_across, gaps.further, opened);
            // The best alignment ends with two letters.
            if (k % 2) best = largest(best, last, ending);
            last = ending;
        }
    }
};
