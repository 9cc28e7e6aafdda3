// As sweep_identity.cu, for substitution matrices.
#include "pairwise/sweep.cuh"

using Scheme = Substitution;

SWEEP(sweep_local_16_bits, Lanes16, WAVEFRONT_ROWS, true, false)
SWEEP(sweep_local_32_bits, Lane32, WAVEFRONT_ROWS, true, false)
SWEEP(trace_local_16_bits, Lanes16, TRACED_ROWS, true, true)
SWEEP(trace_local_32_bits, Lane32, TRACED_ROWS, true, true)
