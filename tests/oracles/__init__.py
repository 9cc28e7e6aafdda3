"""Slow, obvious answers to what the kernels are asked."""
