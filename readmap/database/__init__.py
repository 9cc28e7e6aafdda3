"""Search of a sequence database by exact Smith-Waterman."""
