"""Searches: their configuration, devices, batches, sample model and outputs."""
