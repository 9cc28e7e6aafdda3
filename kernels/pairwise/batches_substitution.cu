// Batches of pairs whose letters a matrix scores.
#include "pairwise/batches.cuh"
#include "pairwise/strip_substitution.cuh"

using Scheme = Substitution;

SCORE_PAIRS(score_pairs_16, Narrow)
SCORE_PAIRS(score_pairs_32, Wide)
TRACE_PAIRS(trace_pairs_16, Narrow)
TRACE_PAIRS(trace_pairs_32, Wide)
