// As sweep.cu, of letters that a matrix scores.
#include "pairwise/sweep.cuh"
#include "pairwise/wavefront_substitution.cuh"

SWEEP(sweep_local_16_bits, Narrow, WAVE_ROWS, true, false)
SWEEP(sweep_local_32_bits, Single, WAVE_ROWS, true, false)
SWEEP(step_local_16_bits, Narrow, STEP_ROWS, true, true)
SWEEP(step_local_32_bits, Single, STEP_ROWS, true, true)
