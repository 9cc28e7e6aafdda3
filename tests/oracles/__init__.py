"""Slow and obvious Python versions of the kernels' computations."""
