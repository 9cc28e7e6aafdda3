"""Alignments as pysam's segments: what a SAM file of them would hold."""

from __future__ import annotations

from collections.abc import Sequence

import pysam

from readmap.backend import Array, Backend
from readmap.formats import sam
from readmap.formats.fasta import Contig
from readmap.version import __version__


def header_of(contigs: Sequence[Contig]) -> pysam.AlignmentHeader:
    """The header of a file of these contigs, with readmap as its program."""
    return pysam.AlignmentHeader.from_text(sam.header(contigs, __version__, "").decode())


def parse_records(records: Array, header: pysam.AlignmentHeader, backend: Backend) -> list[pysam.AlignedSegment]:
    """The segments of SAM records, uint8 on the device."""
    lines = backend.to_host(records).tobytes().decode("utf-8", "replace").split("\n")[:-1]
    return [pysam.AlignedSegment.fromstring(line, header) for line in lines]
