"""Smith-Waterman of two sequences of any length, and of batches of pairs."""
