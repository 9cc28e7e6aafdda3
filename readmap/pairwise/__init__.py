"""Smith-Waterman and Needleman-Wunsch alignment of two sequences of any length, and of batches of pairs."""
