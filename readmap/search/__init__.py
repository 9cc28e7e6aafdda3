"""Mapping: from the bytes of reads to the bytes of SAM, one module a stage, pipeline.py in their order."""
