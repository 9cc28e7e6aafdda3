// As sweep_identity.cu, with more rows a lane: for a GPU, where what a column costs beside its rows is shared by more of them.
#include "pairwise/sweep.cuh"
#include "pairwise/wavefront_identity.cuh"

using Scheme = Identity;

SWEEP(sweep_local_16_bits_24_rows, Narrow, 24, true, false)
SWEEP(sweep_local_16_bits_22_rows, Narrow, 22, true, false)
SWEEP(sweep_local_16_bits_21_rows, Narrow, 21, true, false)
SWEEP(sweep_local_16_bits_20_rows, Narrow, 20, true, false)
SWEEP(sweep_local_16_bits_19_rows, Narrow, 19, true, false)
SWEEP(sweep_local_16_bits_18_rows, Narrow, 18, true, false)
SWEEP(sweep_local_16_bits_17_rows, Narrow, 17, true, false)
