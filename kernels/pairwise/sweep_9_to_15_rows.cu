// As sweep_identity.cu, with fewer rows per lane for GPUs, so that no warp is idle in the last strips.
#include "pairwise/sweep.cuh"

using Scheme = Identity;

SWEEP(sweep_local_16_bits_15_rows, Lanes16, 15, true, false)
SWEEP(sweep_whole_16_bits_15_rows, Lanes16, 15, false, false)
SWEEP(sweep_local_16_bits_13_rows, Lanes16, 13, true, false)
SWEEP(sweep_whole_16_bits_13_rows, Lanes16, 13, false, false)
SWEEP(sweep_local_16_bits_11_rows, Lanes16, 11, true, false)
SWEEP(sweep_whole_16_bits_11_rows, Lanes16, 11, false, false)
SWEEP(sweep_local_16_bits_9_rows, Lanes16, 9, true, false)
SWEEP(sweep_whole_16_bits_9_rows, Lanes16, 9, false, false)
