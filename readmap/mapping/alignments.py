"""Extensions -> Alignments: what each planned record's CIGAR measures, and which records prove true."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.extension import Extensions
from readmap.mapping.inserts import Inserts
from readmap.mapping.record_plan import RecordPlan

_MEASURE, _FLAG = Kernel("mapping/alignments", "measure_alignments"), Kernel("mapping/alignments", "flag_entries")
_SETTLE, _SETTLE_MATES = Kernel("mapping/alignments", "settle_entries"), Kernel("mapping/alignments", "settle_mates")
_SETTLE_SECONDARIES = Kernel("mapping/alignments", "settle_secondaries")
_GATHER = Kernel("mapping/hits", "gather_hits")
_TALLY = Kernel("mapping/alignments", "count_tallies")
_TALLIED_TOGETHER = constant("mapping/alignments.cu", "TALLIED_TOGETHER")

#: A flag of SAM.
PROPER_PAIR = constant("common/flags.cuh", "PROPER_PAIR")


@dataclass(frozen=True)
class Alignments:
    """An alignment an entry of the plan; contigs is -1 where there is none.

    Attributes:
        plan: whose they are; entries that did not prove true have the role NOT_REPORTED.
        roles: the plan's.
        contigs: int32 [entries], number of the contig.
        reference_starts, reference_ends: int64 [entries], half-open, places in the whole reference.
        reversed: uint8 [entries], 1 where the reverse complement aligns.
        mapqs: uint8 [entries]; scores, seconds: int32 [entries], of this place and of the best rival, without bonuses.
        edit_distances: int32 [entries].
        flags: uint16 [entries], SAM's.
        tallies: uint8 [entries], what counters take each for.
        extensions: the CIGARs.
    """

    plan: RecordPlan
    roles: Array
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
    plan: RecordPlan, extensions: Extensions, inserts: Inserts, batch: Batch, context: Context
) -> Alignments:
    """Score, edit distance, place and flags of every entry; one that scores less than its least has no place."""
    backend = context.backend
    alignments = Alignments(
        plan,
        backend.empty(plan.count, np.uint8),
        backend.empty(plan.count, np.int32),
        extensions.reference_starts,
        backend.empty(plan.count, np.int64),
        backend.empty(plan.count, np.uint8),
        backend.empty(plan.count, np.uint8),
        backend.empty(plan.count, np.int32),
        backend.empty(plan.count, np.int32),
        backend.empty(plan.count, np.int32),
        backend.empty(plan.count, np.uint16),
        backend.empty(plan.count, np.uint8),
        extensions,
    )
    batch.launch(
        _MEASURE, plan.count, context, plan=plan, extensions=extensions, windows=plan.window_rows, alignments=alignments
    )
    if batch.reads.paired and inserts.sizes:
        batch.launch(_SETTLE_MATES, batch.reads.count // 2, context, inserts=inserts, plan=plan, alignments=alignments)
    batch.launch(_SETTLE, batch.reads.count, context, plan=plan, extensions=extensions, alignments=alignments)
    if context.reporting.most_secondary:
        alignments = _settle_secondaries(alignments, batch, context)
    batch.launch(
        _FLAG,
        plan.count,
        context,
        plan=plan,
        inserts=inserts,
        alignments=alignments,
        paired=batch.reads.paired,
        supplementary_as_secondary=context.reporting.supplementary_as_secondary,
    )
    backend.put(plan.roles, alignments.roles)
    return alignments


@dataclass(frozen=True)
class HitTable:
    """Primary alignments, a row a read, as kernels/mapping/hits.cu and Hits of readmap/run/hits.py have them."""

    contigs: Array
    ref_starts: Array
    ref_ends: Array
    strands: Array
    mapqs: Array
    scores: Array
    seconds: Array
    edit_distances: Array
    cigar_offsets: Array
    cigar_lengths: Array
    proper: Array


def gather_hits(alignments: Alignments, count: int, first: int, step: int, batch: Batch, context: Context) -> HitTable:
    """Of records first, first + step and so on, `count` in all."""
    kinds = ["i4", "i8", "i8", "i1", "u1", "i4", "i4", "i4", "i8", "i4", "u1"]
    hits = HitTable(*(context.backend.empty(count, np.dtype(kind)) for kind in kinds))
    given = {"plan": alignments.plan, "extensions": alignments.extensions, "alignments": alignments}
    batch.launch(_GATHER, count, context, **given, hits=hits, first=first, step=step)
    return hits


def _settle_secondaries(alignments: Alignments, batch: Batch, context: Context) -> Alignments:
    """The same without secondary ones that are another entry's alignment."""
    plan, backend = alignments.plan, context.backend
    settled = backend.empty(plan.count, np.uint8)
    batch.launch(
        _SETTLE_SECONDARIES,
        plan.count,
        context,
        plan=plan,
        windows=plan.window_rows,
        alignments=alignments,
        settled=settled,
    )
    return replace(alignments, roles=settled)


def count_alignments(alignments: Alignments, batch: Batch, context: Context) -> None:
    """Count what the batch's records say."""
    entries, counts = alignments.plan.count, batch.ledger.total("tallies")
    sections = -(-entries // _TALLIED_TOGETHER)
    context.backend.launch(_TALLY, sections, tallies=alignments.tallies, counts=counts, entries=entries)
