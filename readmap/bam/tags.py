"""Hashes of tag texts, as computed by kernels/bam/tags.cuh."""

from __future__ import annotations


def hash_text(text: bytes) -> int:
    """Return the FNV-1a hash of a text, 1 instead of 0, as hash_tag_text does."""
    value = 0xCBF29CE484222325
    for letter in text:
        value = (value ^ letter) * 0x100000001B3 % (1 << 64)
    return max(value, 1)
