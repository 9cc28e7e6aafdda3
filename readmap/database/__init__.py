"""A query against every sequence of a database, by Smith-Waterman."""
