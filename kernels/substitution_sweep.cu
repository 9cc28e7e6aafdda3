// As sweep.cu, of letters that a matrix scores.
#include "sweep.cuh"
#include "wave_substitution.cuh"

SWEEP(sweep_local_16_bits, Narrow, true, false)
SWEEP(sweep_local_32_bits, Single, true, false)
SWEEP(step_local_16_bits, Narrow, true, true)
SWEEP(step_local_32_bits, Single, true, true)
