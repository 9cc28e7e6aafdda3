"""Extensions -> Alignments -> the bytes of SAM or BAM records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.formats.reads import Reads
from readmap.formats.sam import Form
from readmap.index.device import DeviceIndex
from readmap.search.extension import Extensions
from readmap.search.parameters import WINDOWS, Scoring
from readmap.search.placement import Placements
from readmap.search.queries import Queries
from readmap.search.windows import Windows

_MEASURE = Kernel("sam", "measure_alignments")
_MEASURE_RECORDS, _WRITE_RECORDS = Kernel("sam", "measure_records"), Kernel("sam", "write_records")


@dataclass(frozen=True)
class Alignments:
    """One primary alignment a slot; contigs is -1 where a read is unmapped.

    Attributes:
        contigs: int32 [reads], number of the contig.
        reference_starts, reference_ends: int64 [reads], half-open, places in the whole reference.
        reversed: uint8 [reads], 1 where the reverse complement aligns.
        mapqs: uint8 [reads]; scores, seconds: int32 [reads], of this place and of the best other one, without bonuses.
        edit_distances: int32 [reads].
        extensions: the CIGARs.
    """

    contigs: Array
    reference_starts: Array
    reference_ends: Array
    reversed: Array
    mapqs: Array
    scores: Array
    seconds: Array
    edit_distances: Array
    extensions: Extensions


def measure_alignments(
    extensions: Extensions,
    placements: Placements,
    windows: Windows,
    queries: Queries,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> Alignments:
    """Score, edit distance and place of every alignment; one below scoring.min_score is dropped."""
    count = len(queries.host_lengths)
    alignments = Alignments(
        backend.empty(count, np.int32),
        extensions.reference_starts,
        backend.empty(count, np.int64),
        backend.empty(count, np.uint8),
        placements.mapqs,
        backend.empty(count, np.int32),
        placements.seconds,
        backend.empty(count, np.int32),
        extensions,
    )
    backend.launch(
        _MEASURE,
        count,
        *queries.arguments,
        *index.reference,
        windows.rows,
        placements.chosen,
        extensions.offsets,
        extensions.operations,
        extensions.counts,
        extensions.reference_starts,
        alignments.reference_ends,
        alignments.contigs,
        alignments.scores,
        alignments.edit_distances,
        alignments.reversed,
        alignments.mapqs,
        alignments.seconds,
        WINDOWS,
        scoring.min_score,
        *scoring.arguments(),
    )
    return alignments


def format_records(
    alignments: Alignments,
    reads: Reads,
    queries: Queries,
    index: DeviceIndex,
    form: Form,
    read_group: Array,
    backend: Backend,
) -> Array:
    """The records of a batch in the order of the input, uint8 on the device.

    read_group: uint8, the tag in that form, or empty.
    """
    extensions = alignments.extensions
    arguments: tuple[Any, ...] = (
        *reads.texts,
        queries.slot_of,
        *queries.arguments,
        *index.reference,
        index.barrier_letters,
        index.contig_names,
        index.contig_name_offsets,
        extensions.offsets,
        extensions.operations,
        extensions.counts,
        extensions.reference_starts,
        alignments.reference_ends,
        alignments.contigs,
        alignments.scores,
        alignments.seconds,
        alignments.edit_distances,
        alignments.reversed,
        alignments.mapqs,
        read_group,
        len(read_group),
        int(form),
    )
    lengths = backend.empty(reads.count, np.int64)
    backend.launch(_MEASURE_RECORDS, reads.count, *arguments, lengths)
    ends, total = backend.ends(lengths)
    out = backend.empty(total, np.uint8)
    backend.launch(_WRITE_RECORDS, reads.count, *arguments, ends, out)
    return out
