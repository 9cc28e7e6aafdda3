"""The way of a batch, stage by stage: from its reads to their alignments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from readmap.backend.sizes import Listed
from readmap.mapping.alignments import Alignments, measure_alignments
from readmap.mapping.batch import Batch
from readmap.mapping.beside import looks_beside, settle_beside
from readmap.mapping.context import Context, Sample
from readmap.mapping.diagonals import find_diagonals
from readmap.mapping.extension import score_windows, trace_alignments
from readmap.mapping.fragments import join_mates
from readmap.mapping.inserts import Inserts, to_device
from readmap.mapping.matches import SeedMatches, list_candidates, parts_with_matches
from readmap.mapping.pairs import pair_mates
from readmap.mapping.parameters import DISTANT, SPLIT, SPLIT_WINDOWS, efforts
from readmap.mapping.passes import select
from readmap.mapping.pieces import settle_reads
from readmap.mapping.placement import choose_windows
from readmap.mapping.record_plan import RecordPlan, plan_records, trace_several
from readmap.mapping.rescues import count_rescued, rescue_mates
from readmap.mapping.secondaries import add_secondaries
from readmap.mapping.seeds import find_seeds
from readmap.mapping.windows import add_diagonals, join_diagonals
from readmap.reads.parsing import Reads


def search_reads(reads: Reads, context: Context) -> Batch:
    """At least one read, searched: what is found of it depends on what others showed before by insert sizes alone."""
    batch, unknowing = Batch.of(reads, context), replace(context, sample=Sample())
    if not context.reporting.everywhere:
        settle_reads(batch, unknowing)
        if looks_beside(batch, context):
            settle_beside(batch, context, searched=False)
    _search_by_seeds(batch, unknowing)
    return batch


def search_again(batch: Batch, context: Context) -> Batch:
    """A batch that was searched before the insert sizes were known, as if they had been."""
    if looks_beside(batch, context):
        settle_beside(batch, context, searched=True)
        _search_by_seeds(batch, replace(context, sample=Sample()))
    return batch


def _search_by_seeds(batch: Batch, context: Context) -> None:
    """Search the reads that are unsettled."""
    for effort in efforts(context.index.suffix_count, context.index.host.has_alternates):
        for selection in select(effort, batch):
            seeds = find_seeds(selection, batch, context)
            diagonals = find_diagonals(selection, seeds, batch, context)
            if effort.takes == SPLIT:
                add_diagonals(selection.slots, diagonals, SPLIT_WINDOWS, batch, context)
            else:
                join_diagonals(selection.slots, diagonals, batch, context)
            score_windows(selection.slots, batch, context, long_gaps=effort.takes in (DISTANT, SPLIT))
            choose_windows(selection.slots, batch, context)


def align_reads(batch: Batch, context: Context) -> Iterator[tuple[Batch, Alignments]]:
    """The alignments of a batch that has been searched, placed anew as the sample asks; mates suit each other where the
    library has insert sizes.

    They come in parts of the batch, one unless all places are reported.
    """
    # A batch may be of single reads alone where others have pairs.
    inserts = to_device(context.sample.insert_sizes if batch.reads.paired else (), context.backend)
    choose_windows(Listed.of(batch.queries.slot_of), batch, context)
    rests = join_mates(inserts, batch, context) if inserts.sizes and context.pairing.joint else None
    rescues = rescue_mates(inserts, batch, context) if inserts.sizes and context.pairing.rescue else None
    if rests is not None:
        pair_mates(inserts, rests, batch, context)
    if rescues is not None:
        count_rescued(rescues, batch, context)
    if not context.reporting.most_secondary:
        yield batch, _align(plan_records(batch, context), inserts, batch, context)
        return
    batch.settle()
    for part, matches in parts_with_matches(batch, context):
        yield part, _align_all(matches, inserts, part, context)


def _align(plan: RecordPlan, inserts: Inserts, batch: Batch, context: Context) -> Alignments:
    extensions = trace_alignments(plan, batch, context)
    return measure_alignments(plan, extensions, inserts, batch, context)


def _align_all(matches: SeedMatches, inserts: Inserts, batch: Batch, context: Context) -> Alignments:
    """With all other places of each part; which parts prove true decides what else is another place of them.

    The only part of a read always does.
    """
    plan = plan_records(batch, context)
    trace_several(plan, batch, context)
    parts = _align(plan, inserts, batch, context).plan
    candidates = list_candidates(matches, batch, context)
    return _align(add_secondaries(parts, candidates, batch, context), inserts, batch, context)
