"""Test the drawn paths against the position of every column; the pictures themselves are inspected by people."""

import random

import numpy as np
import pytest
from pair_examples import sequences

from readmap.backend import open_backend
from readmap.pairwise.comparison import align_batch
from readmap.pairwise.parameters import MatchScores, Mode
from readmap.pairwise.plot import Paths, find_paths, join_paths
from readmap.pairwise.results import Results
from readmap.reads.sequences import Sequences


def batch(queries: Sequences, targets: Sequences, reverse: np.ndarray, first: int, end: int) -> Results:
    """Return results of pairs [first, end), with `reverse` as given."""
    part = queries.part(first, end)
    backwards = part.reverse_complements()
    letters = np.where(np.repeat(reverse[first:end], part.lengths), backwards.letters, part.letters)
    part = Sequences(part.names, letters, part.offsets)
    backend = open_backend("cpu", threads=2)
    found = align_batch(part, targets.part(first, end), MatchScores(2, 3, 1, 1), Mode.LOCAL, backend, False)
    return Results(part, targets.part(first, end), reverse[first:end], found, False, first, first)


def lines(paths: Paths) -> list[list[tuple[float, float, int]]]:
    """Return the corners of each alignment, with the gap that starts there."""
    found: list[list[tuple[float, float, int]]] = [[]]
    for x, y, gap in zip(paths.x, paths.y, paths.gaps, strict=True):
        if np.isnan(x):
            found.append([])
        else:
            found[-1].append((x, y, int(gap)))
    return [line for line in found if line]


def test_paths() -> None:
    generator = random.Random(1)
    queries = sequences(["".join(generator.choices("ACGT", k=generator.randrange(30))) for _ in range(60)])
    targets = sequences(["".join(generator.choices("ACGT", k=generator.randrange(30))) for _ in range(60)])
    reverse = np.array(generator.choices([True, False], k=60))
    parts = [batch(queries, targets, reverse, *cut) for cut in ((0, 20), (20, 21), (21, 60))]
    drawn = lines(join_paths([find_paths(part, queries, targets) for part in parts]))
    expected = []
    for number, result in enumerate(result for part in parts for result in part):
        if result.is_empty:
            continue
        x = int(targets.offsets[number]) + result.target_start
        y = int(queries.offsets[number]) + (result.query_end if result.reverse else result.query_start)
        line = []
        for operation in result.operations.tolist():
            kind, length = operation & 15, operation >> 4
            line.append((x, y, {1: -length, 2: length}.get(kind, 0)))
            x += length * (kind != 1)
            y += length * (kind != 2) * (-1 if result.reverse else 1)
        expected.append([*line, (x, y, 0)])
    assert drawn == expected


@pytest.mark.parametrize("count", [1, 3, 400])
def test_pictures_of_few_and_many(count: int) -> None:
    plot = pytest.importorskip("readmap.pairwise.plot")
    queries, targets = sequences(["ACGT" * 5] * count), sequences(["ACGT" * 5, *["TTTT"] * (count - 1)])
    queries.names[0] = b"not $a_1^ formula$ \xff"
    drawing = plot.DotPlot(queries, targets)
    assert drawing.draw("png").startswith(b"\x89PNG")
    drawing.add(batch(queries, targets, np.zeros(count, np.bool_), 0, count))
    assert drawing.draw("svg").startswith(b"<?xml")
