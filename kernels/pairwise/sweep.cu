// Sweeps of the matrix of two sequences of nucleotides: the scores at its borders and the first of its best cells, or where
// every cell's scores come from.
#include "pairwise/sweep.cuh"
#include "pairwise/wavefront_identity.cuh"

SWEEP(sweep_local_16_bits, Narrow, WAVE_ROWS, true, false)
SWEEP(sweep_local_32_bits, Single, WAVE_ROWS, true, false)
SWEEP(sweep_whole_16_bits, Narrow, WAVE_ROWS, false, false)
SWEEP(sweep_whole_32_bits, Single, WAVE_ROWS, false, false)
SWEEP(step_local_16_bits, Narrow, STEP_ROWS, true, true)
SWEEP(step_local_32_bits, Single, STEP_ROWS, true, true)
SWEEP(step_whole_16_bits, Narrow, STEP_ROWS, false, true)
SWEEP(step_whole_32_bits, Single, STEP_ROWS, false, true)
