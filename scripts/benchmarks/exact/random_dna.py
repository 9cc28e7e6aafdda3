"""A search in a gigabase of random DNA, whose suffixes the GPU sorts by their first 32 bases."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Row, timed
from benchmarks.exact.inputs import QUERY_BASES, SEED, Letters
from benchmarks.exact.searches import find, pack, place_by
from benchmarks.exact.times import search_seconds
from readmap.backend import Array, Backend
from readmap.formats.compression import PieceSource
from readmap.index.fasta import read_reference
from readmap.index.index import Index
from readmap.index.suffix_array import build_prefix_table, first_disorder, table_bases
from readmap.strand import Strand

BASES = np.frombuffer(b"ACGT", np.uint8)


def search_random(bases: int, queries: int, runs: int, backend: Backend) -> Row:
    """Seconds of the sort and of the search by array, once both are checked."""
    random, seconds = np.random.default_rng(SEED), dict[str, float]()
    letters = BASES[random.integers(0, 4, bases, np.uint8)]
    contig = (part for part in (b">random\n", letters.tobytes()))
    reference = read_reference(PieceSource("random DNA", contig), backend)
    words = backend.to_device(reference.words)
    sort_suffixes(words[:2], 32, backend)  # the first time a compiler may run
    with timed(seconds, "sort_seconds", backend):
        places = sort_suffixes(words, bases, backend)
    suffixes = backend.to_host(places)
    del places, words
    backend.release_memory()
    if (rank := first_disorder(reference, suffixes, backend)) is not None:
        sys.exit(f"benchmark: the suffixes of random DNA are out of order at rank {rank}, so nothing is timed")
    resolved = table_bases(bases)
    table = build_prefix_table(reference, suffixes, resolved, backend)
    index = Index(reference, suffixes, table, resolved, edges=None, source="random DNA")
    drawn, starts = draw(letters, queries, random)
    patterns, placed = pack(drawn, backend), place_by("array", index, backend)
    ranks, counts = find("array", patterns, placed, Strand.FORWARD, backend)
    if not np.array_equal(counts[0], starts >= 0) or not np.array_equal(suffixes[ranks[0, ::2]], starts[::2]):
        sys.exit("benchmark: queries drawn from random DNA are not found where they were drawn, so nothing is timed")
    seconds["kernel_seconds"] = search_seconds("array", patterns, placed, Strand.FORWARD, runs, backend)
    return {"bases": bases, "queries": queries, "found_where_drawn": int(counts.sum()), **seconds}


def draw(letters: NDArray[np.uint8], count: int, random: np.random.Generator) -> tuple[Letters, NDArray[np.int64]]:
    """Queries in turn from the letters and as random as these, and where each was drawn, -1 for the latter."""
    starts = np.full(count, -1, np.int64)
    starts[::2] = random.integers(0, len(letters) - QUERY_BASES + 1, len(starts[::2]))
    drawn = BASES[random.integers(0, 4, (count, QUERY_BASES), np.uint8)]
    drawn[::2] = np.lib.stride_tricks.sliding_window_view(letters, QUERY_BASES)[starts[::2]]
    return drawn, starts


def sort_suffixes(words: Array, bases: int, backend: Backend) -> Any:
    """The places of all suffixes of a contig of A, C, G and T in order, where no two share their first 32 bases.

    words: its packed bases, with A behind the end. There a suffix's first bases look like a longer one's; the shorter
    one is smaller. So the sort, which is stable, takes the suffixes from the last to the first.
    """
    keys = backend.empty(len(words) * 32 - 32, np.uint64)
    keys[::32] = words[:-1]
    for base in range(1, 32):
        keys[base::32] = words[:-1] << np.uint64(2 * base) | words[1:] >> np.uint64(64 - 2 * base)
    order = backend.xp.argsort(keys[:bases][::-1], kind="stable")
    return (bases - 1 - order).astype(np.uint32)
