"""The benchmarks of scripts/benchmark, one module or folder each; common.py has shared functions."""
