"""Near-mate search: which reads are resolved near their mates, and that no alternative placement is missed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from examples import Read, below, context_of, draw_pairs, fastq, index_of, random_bases, reads_of, small_genome
from oracles.alignment import reverse_complement
from test_partition_seeds import changed

from readmap.backend import open_backend
from readmap.backend.compilation.declarations import constant
from readmap.mapping.batch import MAX_WINDOWS, WINDOW, Batch, Context, Sample
from readmap.mapping.inserts import fixed_insert_size
from readmap.mapping.near_mates import MAX_MATE_DIAGONALS
from readmap.mapping.parameters import Pairing, Reporting
from readmap.mapping.pipeline import search_again, search_reads

MAX_OCCURRENCES = constant("mapping/partition_seeds.cuh", "MAX_OCCURRENCES")
COPIES, LENGTH, INSERT = MAX_OCCURRENCES + 3, 150, 400
LIBRARY = Sample(insert_sizes=fixed_insert_size(INSERT, 20))


def pair_at(contig: str, begin: int, own: Sequence[int] = (), insert: int = INSERT) -> list[Read]:
    """Return the mates of a fragment; own: positions on the reference strand at which the second mate differs."""
    second = changed(contig[begin + insert - LENGTH : begin + insert], own)
    reads = contig[begin : begin + LENGTH], reverse_complement(second)
    return [Read("p", bases, "I" * LENGTH) for bases in reads]


def repeats(generator: random.Random, differing: Sequence[int] = ()) -> tuple[str, int]:
    """Return copies of a repeat after unique sequence each, and where the first copy's unique sequence starts.

    differing: positions at which the first copy differs from the others.
    """
    unit = random_bases(generator, 300)
    parts = [random_bases(generator, 500)]
    for copy in range(COPIES):
        parts += [random_bases(generator, 400), changed(unit, differing) if copy == 0 else unit]
    return "".join([*parts, random_bases(generator, 500)]), 500


def searched(reads: Sequence[Read], context: Context) -> Batch:
    paired = replace(reads_of(fastq(reads), context.backend), paired=True)
    batch = search_reads(paired, context)
    batch.read_back()
    return batch


def diagonal_of_chosen(batch: Batch, record: int, context: Context) -> int:
    """Return the diagonal of the read's chosen window."""
    host = context.backend.to_host
    slot = host(batch.queries.slot_of)[record]
    rows = host(batch.windows.rows).view(WINDOW).reshape(-1, MAX_WINDOWS)
    return int(rows[slot, host(batch.placements.chosen)[slot]]["diagonal"])


@pytest.mark.parametrize(
    ("differing", "own", "resolved"),
    [
        ([], [], 1),
        ([], [30, 70, 110], 1),  # unlike every copy
        ([60], [60], 1),  # like the other copies, which make no fragment: 102 phred, less 24
        ([60, 100], [60, 100], 0),
        ([60, 100, 140], [60, 100, 140], 0),
    ],
)
def test_read_in_a_repeat(backends: str, differing: list[int], own: list[int], resolved: int) -> None:
    """differing: where the read's copy differs from the others; own: where the read differs from its copy."""
    generator = random.Random(501)
    contig, begin = repeats(generator, differing)
    begin += 400 - (INSERT - LENGTH)  # the second mate begins with the copy
    context = replace(context_of([contig], backends), sample=LIBRARY)
    batch = searched(pair_at(contig, begin, own), context)
    assert (batch.work.resolved, batch.work.near_mates, batch.work.resolved_near_mates) == (1, 1, resolved)
    assert batch.work.searched + batch.work.divergent >= 1 - resolved
    if resolved:
        assert batch.work.searched == batch.work.divergent == 0
        assert diagonal_of_chosen(batch, 1, context) == begin + INSERT - LENGTH


def test_when_near_mates_are_not_searched(backends: str) -> None:
    """Not without a resolved mate, without insert sizes, with all placements reported, or in a wide library."""
    generator = random.Random(502)
    contig, begin = repeats(generator)
    context = replace(context_of([contig], backends), sample=LIBRARY)
    mates = pair_at(contig, begin + 400 - (INSERT - LENGTH))
    assert searched(mates, context).work.near_mates == 1
    assert searched([mates[1], mates[1]], context).work.near_mates == 0
    assert searched([mates[0], mates[0]], context).work.near_mates == 0
    alone = search_reads(reads_of(fastq(mates), context.backend), context)
    alone.read_back()
    assert alone.work.near_mates == 0
    wide = Sample(insert_sizes=fixed_insert_size(3_000, MAX_MATE_DIAGONALS // 8 + 1))
    changes = [{"sample": Sample()}, {"sample": wide}, {"reporting": Reporting(max_xa_hits=5)}]
    changes += [{"pairing": Pairing(rescue=False)}, {"pairing": Pairing(joint=False)}]
    for change in changes:
        assert searched(mates, replace(context, **change)).work.near_mates == 0


@pytest.mark.parametrize("insert", [INSERT - 100, INSERT + 200])
def test_mate_outside_the_insert_sizes(backends: str, insert: int) -> None:
    contig, begin = repeats(random.Random(503))
    context = replace(context_of([contig], backends), sample=LIBRARY)
    work = searched(pair_at(contig, begin + 430 - (insert - LENGTH), insert=insert), context).work
    assert (work.near_mates, work.resolved_near_mates, work.searched) == (1, 0, 1)


@pytest.mark.parametrize(("differences", "resolved"), [(0, 0), (2, 0), (6, 1)])
def test_mate_with_a_second_placement(backends: str, differences: int, resolved: int) -> None:
    """The mate's bases also precede another copy, with one difference in each of `differences` seeds."""
    generator = random.Random(504)
    contig, begin = repeats(generator)
    begin += 400 - (INSERT - LENGTH)
    other = begin + 2 * 700
    twin = changed(contig[begin : begin + LENGTH], [9 + 18 * i for i in range(differences)])
    contig = contig[:other] + twin + contig[other + LENGTH :]
    context = replace(context_of([contig], backends), sample=LIBRARY)
    work = searched(pair_at(contig, begin), context).work
    assert (work.near_mates, work.resolved_near_mates) == (1, resolved)


def test_search_again_equals_search_with_known_insert_sizes(backends: str) -> None:
    generator, backend = random.Random(505), open_backend(backends)
    genome = small_genome(generator)
    reads = [mate for pair in draw_pairs(generator, genome, 400) for mate in pair]
    contig, begin = repeats(generator)
    reads += [mate for _ in range(20) for mate in pair_at(contig, begin + 150 + below(generator, 40))]
    index = index_of([*genome.values(), contig]).to_device(backend)
    known = Context(index, backend, sample=LIBRARY)
    texts = replace(reads_of(fastq(reads), backend), paired=True)
    at_once, later = search_reads(texts, known), search_reads(texts, replace(known, sample=Sample()))
    later = search_again(later, known)
    for batch in (at_once, later):
        batch.read_back()
    works = later.work, at_once.work
    assert works[0].near_mates == works[1].near_mates > works[0].resolved_near_mates
    assert works[0].resolved_near_mates == works[1].resolved_near_mates > 20
    host = backend.to_host
    for table in ("windows", "placements"):
        for name in ("counts", "unexamined_prefixes", "dropped_scores", "chosen", "unresolved_before_search"):
            one, other = (getattr(getattr(batch, table), name, None) for batch in (at_once, later))
            assert one is None or (host(one) == host(other)).all()
    counts = host(at_once.windows.counts)
    rows = [host(batch.windows.rows).view(WINDOW).reshape(-1, MAX_WINDOWS) for batch in (at_once, later)]
    is_window = np.arange(MAX_WINDOWS) < counts[:, None]
    assert (rows[0][is_window] == rows[1][is_window]).all()
