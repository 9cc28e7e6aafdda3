"""Reads that found no place -> the bytes of FASTQ or FASTA, as they came."""

from __future__ import annotations

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.reads.parsing import Reads
from readmap.search.alignments import Alignments

_MEASURE, _WRITE = Kernel("search/fastq", "measure_unmapped"), Kernel("search/fastq", "write_unmapped")


def format_unmapped(alignments: Alignments, reads: Reads, backend: Backend) -> Array:
    """The reads of a batch that have no place, and of mates those where neither has, uint8 on the device.

    They are in the order of the input: mates alternate, and their names end in /1 and /2.
    """
    arguments = (*reads.texts, reads.lengths, alignments.plan.offsets, alignments.flags)
    lengths = backend.empty(reads.count, np.int64)
    backend.launch(_MEASURE, reads.count, *arguments, lengths)
    ends, total = backend.ends(lengths)
    out = backend.empty(total, np.uint8)
    backend.launch(_WRITE, reads.count, *arguments, ends, out)
    return out
