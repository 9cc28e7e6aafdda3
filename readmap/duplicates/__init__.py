"""Duplicates: fragments of the same molecule, as Picard's MarkDuplicates finds them."""
