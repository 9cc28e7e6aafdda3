"""Score the CIGARs of the planned records, drop invalid records, and set SAM flags (Extensions -> Alignments)."""

import numpy as np

from readmap.backend import Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.tables import Table
from readmap.mapping.batch import Batch, Context
from readmap.mapping.extension import Extensions
from readmap.mapping.inserts import InsertSizeTable
from readmap.mapping.record_plan import RecordPlan

_MEASURE, _CHECK_MATES, _DROP_INVALID, _FLAG, _TALLY = (
    Kernel("mapping/alignments", name)
    for name in ("measure_alignments", "check_weak_mates", "drop_invalid_entries", "flag_entries", "count_tallies")
)
_DROP_SECONDARIES = Kernel("mapping/alignments", "drop_duplicate_secondaries")
_GATHER = Kernel("mapping/hits", "gather_hits")
_ENTRIES_PER_BLOCK = constant("mapping/alignments.cu", "ENTRIES_PER_BLOCK")
#: A SAM flag.
PROPER_PAIR = constant("common/sam_flags.cuh", "PROPER_PAIR")


class Alignments(Table, struct="mapping/alignments.cuh:Alignments"):
    """The alignments of the entries of a record plan; dropped entries have the role NOT_REPORTED."""

    plan: RecordPlan
    extensions: Extensions


def measure_alignments(
    plan: RecordPlan, extensions: Extensions, inserts: InsertSizeTable, batch: Batch, context: Context
) -> Alignments:
    """Return scores, MAPQ, flags and roles of all entries; an entry that scores less than its minimum is unmapped.

    The roles of dropped entries are changed in `plan` too.
    """
    backend, starts = context.backend, extensions.reference_starts
    alignments = Alignments.allocate(backend, plan=plan, extensions=extensions, reference_starts=starts)
    shared = {"plan": plan, "extensions": extensions, "alignments": alignments}
    batch.launch(_MEASURE, plan.entries, context, **shared, windows=plan.window_rows)
    if batch.reads.paired and inserts.sizes:
        batch.launch(_CHECK_MATES, batch.reads.count // 2, context, inserts=inserts, plan=plan, alignments=alignments)
    batch.launch(_DROP_INVALID, batch.reads.count, context, **shared)
    if context.reporting.max_secondary:
        kept_roles, given = backend.empty(plan.entries, np.uint8), {"plan": plan, "alignments": alignments}
        batch.launch(_DROP_SECONDARIES, plan.entries, context, **given, windows=plan.window_rows, new_roles=kept_roles)
        alignments = alignments.replace(roles=kept_roles)
    flags = {"paired": batch.reads.paired, "supplementary_as_secondary": context.reporting.supplementary_as_secondary}
    batch.launch(_FLAG, plan.entries, context, plan=plan, inserts=inserts, alignments=alignments, **flags)
    backend.copy_into(plan.roles, alignments.roles)
    return alignments


class HitTable(Table, struct="mapping/hits.cu:HitTable"):
    """Primary alignments, one row per read (class Hits)."""


def gather_hits(alignments: Alignments, count: int, first: int, step: int, batch: Batch, context: Context) -> HitTable:
    """Return the primary alignments of `count` reads: first, first + step, and so on."""
    hits = HitTable.allocate(context.backend, hits=count)
    given = {"plan": alignments.plan, "extensions": alignments.extensions, "alignments": alignments}
    batch.launch(_GATHER, count, context, **given, hits=hits, first=first, step=step)
    return hits


def count_alignments(alignments: Alignments, batch: Batch, context: Context) -> None:
    """Add the number of records with each tally (MAPQ, pairing, kind) to the device counter "tallies"."""
    entries, counts = alignments.plan.entries, batch.device_counters.total("tallies")
    sections = -(-entries // _ENTRIES_PER_BLOCK)
    context.backend.launch(_TALLY, sections, tallies=alignments.tallies, counts=counts, entries=entries)
