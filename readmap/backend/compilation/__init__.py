"""Compilation of the kernels, from their sources to cached machine code."""
