// Batches of pairs whose letters a matrix scores.
#include "pairwise/batches.cuh"
#include "pairwise/strip_letters.cuh"

using Scheme = Substitution;

SCORE_PAIRS(score_pairs_16, Lanes16)
SCORE_PAIRS(score_pairs_32, Lanes32)
TRACE_PAIRS(trace_pairs_16, Lanes16)
TRACE_PAIRS(trace_pairs_32, Lanes32)
