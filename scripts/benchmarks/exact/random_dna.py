"""Sort the suffixes of a gigabase of random DNA on the device, and search in it."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Row, timed
from benchmarks.exact.inputs import QUERY_BASES, SEED, Letters
from benchmarks.exact.searches import find, pack, place_by
from benchmarks.exact.times import search_seconds
from readmap.backend import Backend
from readmap.backend.team import Team
from readmap.formats.byte_source import GeneratorSource
from readmap.index.fasta import read_reference
from readmap.index.index import Index
from readmap.index.suffix_array import (
    build_prefix_table,
    build_suffix_array,
    first_unsorted_rank,
    plan_suffix_array,
    table_bases,
)
from readmap.strand import Strand

BASES = np.frombuffer(b"ACGT", np.uint8)


def search_random(bases: int, queries: int, runs: int, backend: Backend) -> Row:
    """Return the seconds of the sort and of the search by array, after both are checked."""
    random, seconds = np.random.default_rng(SEED), dict[str, float]()
    letters = BASES[random.integers(0, 4, bases, np.uint8)]
    contig = (part for part in (b">random\n", letters.tobytes()))
    reference = read_reference(GeneratorSource("random DNA", contig), backend)
    held = reference.to_device(backend)
    team = Team.of(backend)
    plan = plan_suffix_array(reference, held, team)  # may run a compiler
    with timed(seconds, "sort_seconds", backend):
        (order,) = build_suffix_array([held], plan, team)
    backend.release_memory()
    if (rank := first_unsorted_rank(held, reference.length, order, backend)) is not None:
        sys.exit(f"benchmark: the suffixes of random DNA are out of order at rank {rank}, so nothing is timed")
    resolved = table_bases(bases)
    table, suffixes = (backend.to_host(a) for a in (build_prefix_table(held, order, resolved, backend), order))
    index = Index(reference, suffixes, table, resolved, edges=None, source="random DNA")
    drawn, starts = draw(letters, queries, random)
    patterns, placed = pack(drawn, backend), place_by("array", index, backend)
    ranks, counts = find("array", patterns, placed, Strand.FORWARD, backend)
    if not np.array_equal(counts[0], starts >= 0) or not np.array_equal(suffixes[ranks[0, ::2]], starts[::2]):
        sys.exit("benchmark: queries drawn from random DNA are not found where they were drawn, so nothing is timed")
    seconds["kernel_seconds"] = search_seconds("array", patterns, placed, Strand.FORWARD, runs, backend)
    return {"bases": bases, "queries": queries, "found_where_drawn": int(counts.sum()), **seconds}


def draw(letters: NDArray[np.uint8], count: int, random: np.random.Generator) -> tuple[Letters, NDArray[np.int64]]:
    """Return queries drawn alternately from the letters and at random, and the start of each in the letters, or -1."""
    starts = np.full(count, -1, np.int64)
    starts[::2] = random.integers(0, len(letters) - QUERY_BASES + 1, len(starts[::2]))
    drawn = BASES[random.integers(0, 4, (count, QUERY_BASES), np.uint8)]
    drawn[::2] = np.lib.stride_tricks.sliding_window_view(letters, QUERY_BASES)[starts[::2]]
    return drawn, starts
