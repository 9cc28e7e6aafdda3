"""Reads to alignments: `pipeline.py` calls the stages in order, and each stage has a file."""
