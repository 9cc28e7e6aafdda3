// As sweep_identity.cu, of letters that a matrix scores.
#include "pairwise/sweep.cuh"
#include "pairwise/wavefront_substitution.cuh"

using Scheme = Substitution;

SWEEP(sweep_local_16_bits, Narrow, WAVEFRONT_ROWS, true, false)
SWEEP(sweep_local_32_bits, Single, WAVEFRONT_ROWS, true, false)
SWEEP(trace_local_16_bits, Narrow, TRACED_ROWS, true, true)
SWEEP(trace_local_32_bits, Single, TRACED_ROWS, true, true)
