"""Map a batch of reads, stage by stage (Reads -> Batch -> Alignments): the table of contents of mapping."""

from collections.abc import Iterator
from dataclasses import replace

from readmap.backend.device_counts import DeviceList
from readmap.mapping.alignments import Alignments, measure_alignments
from readmap.mapping.batch import Batch, Context, Sample
from readmap.mapping.diagonals import find_diagonals
from readmap.mapping.extension import score_windows, trace_alignments
from readmap.mapping.fragments import join_mates
from readmap.mapping.inserts import InsertSizeTable, insert_size_table
from readmap.mapping.matches import SeedMatches, list_candidates, parts_with_matches
from readmap.mapping.near_mates import can_search_near_mates, resolve_near_mates
from readmap.mapping.pairs import count_rescued, pair_mates, rescue_mates
from readmap.mapping.parameters import DIVERGENT, MAX_SPLIT_WINDOWS, SPLIT, search_passes
from readmap.mapping.partition_seeds import resolve_reads
from readmap.mapping.record_plan import RecordPlan, plan_records, skip_single_entries
from readmap.mapping.secondaries import add_secondaries
from readmap.mapping.seeds import find_seeds, select_reads
from readmap.mapping.windows import add_windows, choose_windows, replace_windows
from readmap.reads.parsing import Reads


def search_reads(reads: Reads, context: Context) -> Batch:
    """Return a new batch of the reads, at least one, with their windows and placements.

    Only the near-mate search depends on other reads, by the insert sizes; all other stages depend on the read alone.
    """
    batch, unknowing = Batch.of(reads, context), replace(context, sample=Sample())
    if not context.reporting.needs_all_placements:
        resolve_reads(batch, unknowing)
        if can_search_near_mates(batch, context):
            resolve_near_mates(batch, context, seeded=False)
    _search_by_seeds(batch, unknowing)
    return batch


def search_again(batch: Batch, context: Context) -> Batch:
    """Update and return a batch that was searched before the insert sizes were known, as if they had been known."""
    if can_search_near_mates(batch, context):
        resolve_near_mates(batch, context, seeded=True)
        _search_by_seeds(batch, replace(context, sample=Sample()))
    return batch


def _search_by_seeds(batch: Batch, context: Context) -> None:
    """Add windows and placements of the unresolved reads to the batch, in seed searches of increasing effort."""
    for search_pass in search_passes(context.index.suffix_count, context.index.host.has_alternates):
        for selection in select_reads(search_pass, batch):
            seeds = find_seeds(selection, batch, context)
            diagonals = find_diagonals(selection, seeds, batch, context)
            if search_pass.reason == SPLIT:
                add_windows(selection.slots, diagonals, MAX_SPLIT_WINDOWS, batch, context)
            else:
                replace_windows(selection.slots, diagonals, batch, context)
            score_windows(selection.slots, batch, context, long_gaps=search_pass.reason in (DIVERGENT, SPLIT))
            choose_windows(selection.slots, batch, context)


def align_reads(batch: Batch, context: Context) -> Iterator[tuple[Batch, Alignments]]:
    """Yield (batch, its alignments) after choosing placements again with the sample's divergence and insert sizes.

    The whole batch comes at once, unless all placements are reported: then it is split to fit into memory.
    """
    # A batch may hold single reads only, even if the library has pairs.
    inserts = insert_size_table(context.sample.insert_sizes if batch.reads.paired else (), context.backend)
    choose_windows(DeviceList.of(batch.queries.slot_of), batch, context)
    other_fragments = join_mates(inserts, batch, context) if inserts.sizes and context.pairing.joint else None
    rescues = rescue_mates(inserts, batch, context) if inserts.sizes and context.pairing.rescue else None
    if other_fragments is not None:
        pair_mates(inserts, other_fragments, batch, context)
    if rescues is not None:
        count_rescued(rescues, batch, context)
    if not context.reporting.max_secondary:
        yield batch, _align(plan_records(batch, context), inserts, batch, context)
        return
    batch.read_back()
    for part, matches in parts_with_matches(batch, context):
        yield part, _align_secondaries(matches, inserts, part, context)


def _align(plan: RecordPlan, inserts: InsertSizeTable, batch: Batch, context: Context) -> Alignments:
    extensions = trace_alignments(plan, batch, context)
    return measure_alignments(plan, extensions, inserts, batch, context)


def _align_secondaries(matches: SeedMatches, inserts: InsertSizeTable, batch: Batch, context: Context) -> Alignments:
    """Return the alignments, with secondary ones on the diagonals of `matches`.

    These depend on which segments of a split read turn out to be alignments, so reads with segments are traced first.
    """
    plan = plan_records(batch, context)
    skip_single_entries(plan, batch, context)
    parts = _align(plan, inserts, batch, context).plan
    candidates = list_candidates(matches, batch, context)
    return _align(add_secondaries(parts, candidates, batch, context), inserts, batch, context)
