"""Memory that ends anywhere in a search: what it writes and counts is the same, whichever allocation fails."""

from __future__ import annotations

import dataclasses
import io
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from examples import Read, below, context_of, delete, insert, random_bases, substitute, write_pairs
from oracles.alignment import reverse_complement
from oracles.placements import MAX_SEED_WINDOWS
from search_runs import Full

from readmap.mapping import matches
from readmap.mapping.batch import Context
from readmap.mapping.parameters import Pairing, Reporting
from readmap.mapping.records import RecordStyle
from readmap.reads.chunks import PairLayout
from readmap.run import sample
from readmap.run.read_mapper import ReadMapper
from readmap.run.stream import run

LENGTH, UNIQUE, COPIES = 60, 800, 16
MATCHES = 19_000  # that fit into memory together: the matches of all pairs of copies except the last one


@dataclass(frozen=True)
class Search:
    """A search of pairs, or of their first reads; estimated: the number of reads that the sample is estimated from."""

    layout: PairLayout
    pairs: slice
    batch_reads: int
    estimated: int
    reporting: Reporting = field(default_factory=Reporting)
    pairing: Pairing = field(default_factory=Pairing)
    style: RecordStyle = field(default_factory=RecordStyle)


#: A batch after the estimate, two batches that wait for it, and a batch that is aligned in parts at the end.
SEARCHES = {
    "reads": Search(PairLayout.SINGLE, slice(COPIES - 3, 2 * COPIES - 3), 10, 10, style=RecordStyle(unmapped=True)),
    "pairs": Search(PairLayout.TWO_FILES, slice(2 * COPIES), 2 * COPIES, 4 * COPIES),
    "secondary alignments": Search(
        *(PairLayout.TWO_FILES, slice(COPIES), 2 * COPIES, 3 * COPIES),
        *(Reporting(max_secondary=3), Pairing(insert_size=(150, 6))),
    ),
}


def draw_genome(generator: random.Random) -> str:
    """A unique part, and a family of more near copies than a read has windows for."""
    unit = random_bases(generator, 300)
    copies = [substitute(generator, unit, below(generator, 2)) for _ in range(MAX_SEED_WINDOWS + 12)]
    return random_bases(generator, UNIQUE) + "".join(copy + random_bases(generator, 20) for copy in copies)


def draw_pairs(generator: random.Random, genome: str) -> list[tuple[Read, Read]]:
    """Draw pairs in copies with a gap in one mate, a pair from nowhere, and pairs that show the insert sizes."""
    pairs = []
    for number in range(2 * COPIES):
        is_copy = number < COPIES
        start = UNIQUE + below(generator, len(genome) - UNIQUE - 200) if is_copy else below(generator, UNIQUE - 200)
        fragment = genome[start : start + 140 + below(generator, 21)]
        mates = [fragment[: LENGTH + 6], reverse_complement(fragment)[: LENGTH + 6]]
        if is_copy:
            gapped, at, size = number % 2, 20 + below(generator, 20), 1 + below(generator, 6)
            changed = insert(generator, mates[gapped], at, size) if number % 4 > 1 else delete(mates[gapped], at, size)
            mates[gapped] = substitute(generator, changed, below(generator, 4))
        if number in (COPIES - 3, COPIES - 2):
            mates[number % 2] = random_bases(generator, LENGTH)
        first, second = (Read(str(number), mate[:LENGTH], "I" * LENGTH) for mate in mates)
        pairs.append((first, second) if below(generator, 2) else (second, first))
    return pairs


class Written(io.BytesIO):
    """An output in memory, which keeps no buffer that is lent to it."""

    from_device = False

    def write_borrowed(self, data: Any, done: Callable[[], None]) -> None:
        self.write(data)
        done()


SEED = 23  # where what a failed try adds to windows would change the places of pairs


def searched(search: Search, context: Context, files: list[Path], fails: int = 0) -> tuple[list[Any], int]:
    """What a search wrote and counted, and how often it allocated; fails: the number of the allocation that fails."""
    backend = context.backend
    given = dataclasses.replace(context, reporting=search.reporting, pairing=search.pairing)
    mapping = ReadMapper([given], search.style)
    outputs: list[Any] = [Written(), Written()]
    allocations = 0

    def allocating(function: Any) -> Any:
        def allocate(*arguments: Any) -> Any:
            nonlocal allocations
            allocations += 1
            if allocations == fails:
                raise Full
            return function(*arguments)

        return allocate

    with pytest.MonkeyPatch.context() as patch:
        for name in ("empty", "to_device", "to_device_random_access", "upload"):
            patch.setattr(backend, name, allocating(getattr(backend, name)))
        paths = [str(path) for path in files[: search.layout.files]]
        run(paths, outputs, mapping, [backend], layout=search.layout, batch_reads=search.batch_reads)
    counted = dataclasses.asdict(mapping.summary) | {"mapqs": mapping.summary.mapqs.tolist()}
    written = [output.getvalue() for output in outputs]
    # A pending batch that is searched again changes only the counts of work.
    return [
        *written,
        *(counted[name] for name in counted.keys() - {"seconds", "waiting", "devices", "work"}),
    ], allocations


@pytest.mark.parametrize("name", SEARCHES)
def test_any_allocation_may_fail(backends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Any allocation may fail: while batches are pending, while they are aligned, or after them."""
    search, generator = SEARCHES[name], random.Random(SEED)
    genome = draw_genome(generator)
    context = context_of([genome], backends, 1)
    files = write_pairs(tmp_path, draw_pairs(generator, genome)[search.pairs], PairLayout.TWO_FILES)
    monkeypatch.setattr(context.backend, "memory_error", Full)
    monkeypatch.setattr(sample, "READS", search.estimated)
    monkeypatch.setattr(sample, "PAIRS", search.estimated // 2)
    monkeypatch.setattr(matches, "MATCH_BYTES", context.backend.scratch_bytes // MATCHES)
    expected, allocations = searched(search, context, files)
    assert 100 < allocations < 600
    # The last search has the stages of all.
    for fails in range(1, allocations + 1, 4 if search.reporting.max_secondary else 15):
        assert searched(search, context, files, fails)[0] == expected, fails
