// Sweeps of the matrix of two nucleotide sequences: border scores and the first best cell, or all sources.
#include "pairwise/sweep.cuh"

using Scheme = Identity;

SWEEP(sweep_local_16_bits, Lanes16, WAVEFRONT_ROWS, true, false)
SWEEP(sweep_local_32_bits, Lane32, WAVEFRONT_ROWS, true, false)
SWEEP(sweep_whole_16_bits, Lanes16, WAVEFRONT_ROWS, false, false)
SWEEP(sweep_whole_32_bits, Lane32, WAVEFRONT_ROWS, false, false)
SWEEP(trace_local_16_bits, Lanes16, TRACED_ROWS, true, true)
SWEEP(trace_local_32_bits, Lane32, TRACED_ROWS, true, true)
SWEEP(trace_whole_16_bits, Lanes16, TRACED_ROWS, false, true)
SWEEP(trace_whole_32_bits, Lane32, TRACED_ROWS, false, true)
