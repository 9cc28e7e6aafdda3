// Batches of pairs of nucleotides.
#include "pairwise/batches.cuh"
#include "pairwise/strip_identity.cuh"

using Scheme = Identity;

SCORE_PAIRS(score_pairs_16, Narrow)
SCORE_PAIRS(score_pairs_32, Wide)
TRACE_PAIRS(trace_pairs_16, Narrow)
TRACE_PAIRS(trace_pairs_32, Wide)
