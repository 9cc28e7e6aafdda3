"""Alignments -> the bytes of SAM or BAM records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.formats.header import PROGRAM
from readmap.formats.sam import NO_READ_GROUP, Form, ReadGroup, common_tags
from readmap.index.device import DeviceIndex
from readmap.reads.parsing import Reads
from readmap.reads.queries import Queries
from readmap.search.alignments import Alignments
from readmap.search.parameters import Reporting

_SUM = Kernel("search/sam", "sum_qualities")
_MEASURE, _WRITE = Kernel("search/sam", "measure_records"), Kernel("search/sam", "write_records")


@dataclass(frozen=True)
class Style:
    """What is written, and how.

    Attributes:
        form: of records, text or binary.
        read_group: of all reads.
        program: the ID of readmap's @PG in the header.
        comments: whether what stands behind a read's name is tags, to be appended.
        unmapped: whether reads without a place are also written as they came, to an output of their own.
    """

    form: Form = Form.TEXT
    read_group: ReadGroup = NO_READ_GROUP
    program: str = PROGRAM
    comments: bool = False
    unmapped: bool = False


def format_records(
    alignments: Alignments,
    reads: Reads,
    queries: Queries,
    index: DeviceIndex,
    reporting: Reporting,
    style: Style,
    backend: Backend,
) -> Array:
    """The records of a batch in the order of the input, uint8 on the device."""
    tags = backend.to_device(np.frombuffer(common_tags(style.read_group, style.program, style.form), np.uint8))
    extensions, lines = alignments.extensions, alignments.lines
    quality_sums = backend.empty(reads.count if reads.paired else 0, np.int32)
    backend.launch(_SUM, len(quality_sums), *reads.texts, queries.slot_of, queries.lengths, quality_sums)
    arguments: tuple[Any, ...] = (
        *reads.texts,
        queries.order,
        *queries.arguments,
        *index.reference,
        index.barrier_letters,
        index.contig_names.letters,
        index.contig_names.offsets,
        *lines.arguments,
        extensions.ends,
        extensions.rooms,
        extensions.operations,
        extensions.counts,
        alignments.reference_starts,
        alignments.reference_ends,
        alignments.contigs,
        alignments.scores,
        alignments.seconds,
        alignments.edit_distances,
        alignments.reversed,
        alignments.mapqs,
        alignments.flags,
        quality_sums,
        tags,
        len(tags),
        int(style.read_group != NO_READ_GROUP),
        int(style.comments),
        int(reporting.soft_clipped),
        int(style.form),
    )
    lengths = backend.empty(lines.count, np.int64)
    backend.launch(_MEASURE, lines.count, *arguments, lengths)
    ends, total = backend.ends(lengths)
    out = backend.empty(total, np.uint8)
    backend.launch(_WRITE, lines.count, *arguments, ends, out)
    return out
