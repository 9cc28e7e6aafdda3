"""Duplicate marking by the rules of Picard MarkDuplicates."""
