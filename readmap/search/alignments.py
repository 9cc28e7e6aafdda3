"""Extensions -> Alignments: what each line's CIGAR measures, and which lines prove true."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.index.device import DeviceIndex
from readmap.reads.parsing import Reads
from readmap.reads.queries import Queries
from readmap.search.extension import Extensions
from readmap.search.inserts import Inserts
from readmap.search.parameters import Reporting, Scoring
from readmap.search.record_plan import Lines
from readmap.search.windows import Windows

_MEASURE, _FLAG = Kernel("search/alignments", "measure_alignments"), Kernel("search/alignments", "flag_lines")
_SETTLE, _SETTLE_PLACES = Kernel("search/alignments", "settle_lines"), Kernel("search/alignments", "settle_places")

#: A flag of SAM.
PROPER_PAIR = 2

#: How lines are tallied (search/alignments.cu): primary ones with a place as their MAPQ, this more in a proper pair.
PROPER_TALLY = 64
NO_TALLY, SUPPLEMENTARY_TALLY, SECONDARY_TALLY = 128, 129, 130
MAPQS = 61  # 0 to 60


@dataclass(frozen=True)
class Alignments:
    """An alignment a line; contigs is -1 where there is none.

    Attributes:
        lines: whose they are; those that came to nothing have the role NOTHING.
        contigs: int32 [lines], number of the contig.
        reference_starts, reference_ends: int64 [lines], half-open, places in the whole reference.
        reversed: uint8 [lines], 1 where the reverse complement aligns.
        mapqs: uint8 [lines]; scores, seconds: int32 [lines], of this place and of the best other one, without bonuses.
        edit_distances: int32 [lines].
        flags: uint16 [lines], SAM's.
        tallies: uint8 [lines], what a summary counts each as.
        extensions: the CIGARs.
    """

    lines: Lines
    contigs: Array
    reference_starts: Array
    reference_ends: Array
    reversed: Array
    mapqs: Array
    scores: Array
    seconds: Array
    edit_distances: Array
    flags: Array
    tallies: Array
    extensions: Extensions


def measure_alignments(
    extensions: Extensions,
    lines: Lines,
    windows: Windows,
    inserts: Inserts,
    reads: Reads,
    queries: Queries,
    index: DeviceIndex,
    scoring: Scoring,
    reporting: Reporting,
    backend: Backend,
) -> Alignments:
    """Score, edit distance, place and flags of every line; one that scores less than its line's least has no place."""
    alignments = Alignments(
        lines,
        backend.empty(lines.count, np.int32),
        extensions.reference_starts,
        backend.empty(lines.count, np.int64),
        backend.empty(lines.count, np.uint8),
        lines.mapqs,
        backend.empty(lines.count, np.int32),
        lines.seconds,
        backend.empty(lines.count, np.int32),
        backend.empty(lines.count, np.uint16),
        backend.empty(lines.count, np.uint8),
        extensions,
    )
    cigars = (extensions.ends, extensions.rooms, extensions.operations, extensions.counts)
    places = (alignments.reference_starts, alignments.reference_ends, alignments.contigs)
    backend.launch(
        _MEASURE,
        lines.count,
        *queries.arguments,
        *index.reference,
        windows.rows,
        *lines.arguments,
        lines.least_scores,
        *cigars,
        *places,
        alignments.scores,
        alignments.edit_distances,
        alignments.reversed,
        alignments.mapqs,
        alignments.seconds,
        *scoring.arguments(),
    )
    backend.launch(
        _SETTLE,
        len(queries.host_lengths),
        queries.lengths,
        lines.offsets,
        lines.slots,
        lines.roles,
        lines.owners,
        *cigars,
        *places,
        alignments.reversed,
    )
    if reporting.most_places:
        settled = backend.empty(lines.count, np.uint8)
        where = (*lines.arguments, *places, alignments.reversed, alignments.scores)
        backend.launch(_SETTLE_PLACES, lines.count, queries.order, windows.rows, *where, settled)
        lines = replace(lines, roles=settled)
        alignments = replace(alignments, lines=lines)
    backend.launch(
        _FLAG,
        lines.count,
        queries.order,
        *lines.arguments,
        *inserts.arguments,
        alignments.contigs,
        alignments.reference_starts,
        alignments.reference_ends,
        alignments.reversed,
        alignments.mapqs,
        alignments.flags,
        alignments.tallies,
        int(reads.paired),
        int(reporting.pieces_secondary),
    )
    return alignments
