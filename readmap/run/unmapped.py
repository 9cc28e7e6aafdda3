"""Unmapped reads -> the bytes of FASTQ or FASTA, as they were read."""

from __future__ import annotations

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.tables import Table
from readmap.mapping.alignments import Alignments
from readmap.reads.parsing import Reads

_MEASURE, _WRITE = Kernel("run/fastq", "measure_unmapped"), Kernel("run/fastq", "write_unmapped")


class _UnmappedReads(Table, struct="run/fastq.cu:UnmappedReads"):
    """Reads with the offsets and flags of their records."""


def format_unmapped(alignments: Alignments, reads: Reads, backend: Backend) -> Array:
    """Return the unmapped reads of a batch, and the pairs of which both mates are unmapped, as uint8 on the device.

    They are in the order of the input: mates alternate, and their names end in /1 and /2.
    """
    unmapped = _UnmappedReads(
        texts=reads, lengths=reads.lengths, line_offsets=alignments.plan.offsets, line_flags=alignments.flags
    )
    lengths = backend.empty(reads.count, np.int64)
    backend.launch(_MEASURE, reads.count, reads=unmapped, lengths_out=lengths)
    ends, total = backend.inclusive_sum_with_total(lengths)
    out = backend.empty(total, np.uint8)
    backend.launch(_WRITE, reads.count, reads=unmapped, record_ends=ends, out=out)
    return out
