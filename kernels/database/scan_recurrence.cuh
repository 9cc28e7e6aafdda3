// Cells of a local alignment's matrix in registers, neighbours across, that move along the matrix together, a step at a
// time; Lane::width matrices at once. On the GPU the cells are rows of the query and go along the subject, on the CPU they
// are columns of the subject and go along the query: the recurrence is the same.
//
//              across ->
//      along   held[0]  held[1]  held[2] ...        A gap along the way is a score of each cell, kept from step to step; one
//        |     held[0]  held[1]  held[2] ...        across the way goes through the cells of a step.
//        v
#pragma once
#include "common/simd_lanes.cuh"

// Of a gap, negative: its first letter, with the opening, and a further one.
template <class Lane> struct GapCosts {
    Lane first, further;
};

template <class Lane, i32 CELLS> struct Cells {
    Lane held[CELLS];   // the score of each cell's best alignment
    Lane along[CELLS];  // and of that which goes on with a gap in the next step
    Lane best;

    // Outside the matrix scores are 0. So are those of gaps there: too good, but no better than an empty alignment.
    HOST_DEVICE void begin() {
        UNROLL for (i32 k = 0; k < CELLS; ++k)
            held[k] = along[k] = Lane::all(0);
    }
    // before: the score beside the first cell, of the step before. through: that of a gap that comes from there in this step;
    // it leaves behind the last cell.
    template <class Scores>
    HOST_DEVICE void step(const Scores& scores, Lane before, Lane& through, const GapCosts<Lane>& gaps) {
        Lane last = Lane::all(0);
        UNROLL for (i32 k = 0; k < CELLS; ++k) {
            Lane ending = before + scores.at(k);
            Lane here = largest_or_zero(ending, along[k], through);
            Lane opened = here + gaps.first;
            before = held[k];
            held[k] = here;
            along[k] = add_larger(along[k], gaps.further, opened);
            through = add_larger(through, gaps.further, opened);
            // The best alignment ends with two letters.
            if (k % 2) best = largest(best, last, ending);
            last = ending;
        }
    }
};
