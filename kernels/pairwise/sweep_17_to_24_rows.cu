// As sweep_identity.cu, with more rows per lane for GPUs, which share the overhead of a column among more rows.
#include "pairwise/sweep.cuh"

using Scheme = Identity;

SWEEP(sweep_local_16_bits_24_rows, Lanes16, 24, true, false)
SWEEP(sweep_local_16_bits_22_rows, Lanes16, 22, true, false)
SWEEP(sweep_local_16_bits_21_rows, Lanes16, 21, true, false)
SWEEP(sweep_local_16_bits_20_rows, Lanes16, 20, true, false)
SWEEP(sweep_local_16_bits_19_rows, Lanes16, 19, true, false)
SWEEP(sweep_local_16_bits_18_rows, Lanes16, 18, true, false)
SWEEP(sweep_local_16_bits_17_rows, Lanes16, 17, true, false)
