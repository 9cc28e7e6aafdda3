"""readmap compare: two files of sequences to alignments."""
