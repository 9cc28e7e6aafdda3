"""Extensions -> Alignments: what each planned record's CIGAR measures, and which records prove true."""

from __future__ import annotations

import numpy as np

from readmap.backend import Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.tables import Table
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.extension import Extensions
from readmap.mapping.inserts import InsertSizeTable
from readmap.mapping.record_plan import RecordPlan

_MEASURE, _FLAG = Kernel("mapping/alignments", "measure_alignments"), Kernel("mapping/alignments", "flag_entries")
_SETTLE, _SETTLE_MATES = Kernel("mapping/alignments", "drop_invalid_entries"), Kernel("mapping/alignments", "check_weak_mates")
_SETTLE_SECONDARIES = Kernel("mapping/alignments", "drop_duplicate_secondaries")
_GATHER = Kernel("mapping/hits", "gather_hits")
_TALLY = Kernel("mapping/alignments", "count_tallies")
_TALLIED_TOGETHER = constant("mapping/alignments.cu", "ENTRIES_PER_BLOCK")

#: A flag of SAM.
PROPER_PAIR = constant("common/sam_flags.cuh", "PROPER_PAIR")


class Alignments(Table, struct="mapping/alignments.cuh:Alignments"):
    """An alignment an entry of the plan.

    Attributes:
        plan: whose they are; entries that did not prove true have the role NOT_REPORTED.
        extensions: the CIGARs.
    """

    plan: RecordPlan
    extensions: Extensions


def measure_alignments(
    plan: RecordPlan, extensions: Extensions, inserts: InsertSizeTable, batch: Batch, context: Context
) -> Alignments:
    """Score, edit distance, place and flags of every entry; one that scores less than its least has no place."""
    backend = context.backend
    starts = extensions.reference_starts
    alignments = Alignments.allocate(backend, plan=plan, extensions=extensions, reference_starts=starts)
    batch.launch(
        _MEASURE,
        plan.entries,
        context,
        plan=plan,
        extensions=extensions,
        windows=plan.window_rows,
        alignments=alignments,
    )
    if batch.reads.paired and inserts.sizes:
        batch.launch(_SETTLE_MATES, batch.reads.count // 2, context, inserts=inserts, plan=plan, alignments=alignments)
    batch.launch(_SETTLE, batch.reads.count, context, plan=plan, extensions=extensions, alignments=alignments)
    if context.reporting.max_secondary:
        alignments = _drop_duplicate_secondaries(alignments, batch, context)
    batch.launch(
        _FLAG,
        plan.entries,
        context,
        plan=plan,
        inserts=inserts,
        alignments=alignments,
        paired=batch.reads.paired,
        supplementary_as_secondary=context.reporting.supplementary_as_secondary,
    )
    backend.copy_into(plan.roles, alignments.roles)
    return alignments


class HitTable(Table, struct="mapping/hits.cu:HitTable"):
    """Primary alignments, a row a read, as Hits of readmap/run/hits.py has them."""


def gather_hits(alignments: Alignments, count: int, first: int, step: int, batch: Batch, context: Context) -> HitTable:
    """Of records first, first + step and so on, `count` in all."""
    hits = HitTable.allocate(context.backend, hits=count)
    given = {"plan": alignments.plan, "extensions": alignments.extensions, "alignments": alignments}
    batch.launch(_GATHER, count, context, **given, hits=hits, first=first, step=step)
    return hits


def _drop_duplicate_secondaries(alignments: Alignments, batch: Batch, context: Context) -> Alignments:
    """The same without secondary ones that are another entry's alignment."""
    plan, backend = alignments.plan, context.backend
    settled = backend.empty(plan.entries, np.uint8)
    batch.launch(
        _SETTLE_SECONDARIES,
        plan.entries,
        context,
        plan=plan,
        windows=plan.window_rows,
        alignments=alignments,
        settled=settled,
    )
    return alignments.replace(roles=settled)


def count_alignments(alignments: Alignments, batch: Batch, context: Context) -> None:
    """Count what the batch's records say."""
    entries, counts = alignments.plan.entries, batch.device_counters.total("tallies")
    sections = -(-entries // _TALLIED_TOGETHER)
    context.backend.launch(_TALLY, sections, tallies=alignments.tallies, counts=counts, entries=entries)
