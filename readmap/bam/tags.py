"""The tags of BAM's records, as kernels/bam/tags.cuh reads them."""

from __future__ import annotations


def hash_text(text: bytes) -> int:
    """The number of a tag's text, as text_of_tag has it: FNV-1a, and 1 for 0."""
    number = 0xCBF29CE484222325
    for letter in text:
        number = (number ^ letter) * 0x100000001B3 % (1 << 64)
    return max(number, 1)
