"""What scripts/benchmark measures, a file a benchmark; common.py has what they share."""
