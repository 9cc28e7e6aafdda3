"""Fill folders with random contents that pass the checks on opening: kernels must stay within their arrays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from readmap.database.database import Database
from readmap.database.letters import LETTERS
from readmap.index.index import Index
from readmap.index.suffix_tree import EDGES_PER_NODE

Array = np.ndarray[Any, Any]
Draw = np.random.Generator


def alter(draw: Draw, folder: Path) -> None:
    """Replace the contents of an index, a database or a checkpoint, with correct checksums."""
    if folder.suffix == ".readmap":
        _alter_index(draw, folder)
    elif folder.suffix == ".readmapdb":
        _alter_database(draw, folder)
    else:
        _alter_checkpoint(draw, folder)


def _some(draw: Draw, count: int) -> Array:
    """Return a mask of the elements to alter: all, or a random share of `count` elements."""
    return draw.random(count) < draw.choice((1.0, 1.0, 0.5, 0.1, 0.01))


def _alter_index(draw: Draw, folder: Path) -> None:
    index = Index.open(folder)
    length, count = int(index.reference.contig_starts[-1]), len(index.suffixes)
    words, suffixes = np.array(index.reference.words), np.array(index.suffixes)
    table, edges = np.array(index.prefix_table), np.array(index.edges)
    kinds = draw.choice(("words", "suffixes", "table", "edges"), size=int(draw.integers(1, 5)), replace=False)
    if "words" in kinds:
        where = _some(draw, len(words))
        same = draw.choice(np.array((0, 2**64 - 1), np.uint64))
        words[where] = draw.integers(0, 2**64, where.sum(), np.uint64) if draw.random() < 0.7 else same
    if "suffixes" in kinds:
        where = _some(draw, count)
        suffixes[where] = draw.integers(0, length, where.sum()) if draw.random() < 0.7 else draw.choice((0, length - 1))
    if "table" in kinds:
        table = _table(draw, table, count)
    if "edges" in kinds:
        where = _some(draw, len(edges))
        edges[where] = _edges(draw, int(where.sum()), len(edges) // EDGES_PER_NODE, length, count)
    reference = replace(index.reference, words=words)
    Index(reference, suffixes, table, index.table_bases, edges, index.source).write(folder, force=True)


def _table(draw: Draw, table: Array, count: int) -> Array:
    """Return nondecreasing range ends from 0 to `count`."""
    if draw.random() < 0.2:
        ends = np.full(len(table), draw.choice((0, count)))
    elif draw.random() < 0.5:
        ends = np.sort(draw.integers(0, count + 1, len(table)))
    else:
        shifted = table.astype(np.int64) + draw.integers(-5, 6, len(table))
        ends = np.maximum.accumulate(np.clip(shifted, 0, count))
    ends[0], ends[-1] = 0, count
    return ends.astype(table.dtype)


def _edges(draw: Draw, rows: int, nodes: int, length: int, count: int) -> Array:
    """Return edges with labels within the reference, existing nodes and ranks; an empty label has no target."""
    starts = draw.integers(0, length, rows)
    lengths = np.minimum(draw.integers(0, draw.choice((2, 10, 1000)), rows), length - starts)
    targets = np.where((lengths == 0) | (draw.random(rows) < 0.3), 0, draw.integers(0, nodes, rows))
    return np.stack([starts, lengths, targets, draw.integers(0, count + 1, rows)], axis=1)


def _alter_database(draw: Draw, folder: Path) -> None:
    database = Database.open(folder)
    letters, count = database.letters, len(database)
    codes = np.array(database.codes)
    where = np.flatnonzero(_some(draw, letters))
    codes[where] = draw.integers(0, len(LETTERS), len(where))
    lengths = np.array(database.lengths)
    if draw.random() < 0.5:  # divide the letters into other sequences
        cuts = np.sort(draw.integers(0, letters + 1, count - 1))
        lengths = np.sort(np.diff(cuts, prepend=0, append=letters))[::-1].copy()
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    order = draw.permutation(count)
    replace(database, codes=codes, lengths=lengths, starts=starts, order=order).write(folder, force=True)


def _alter_checkpoint(draw: Draw, folder: Path) -> None:
    """Write random scores into the stored rows and columns; sizes and the name stay unchanged."""
    for file in sorted(folder.rglob("*.npz")):
        with np.load(file) as kept:
            arrays = {name: kept[name] for name in kept.files}
        for array in arrays.values():
            if array.dtype == np.int32 and array.ndim:
                where, most = _some(draw, array.size).reshape(array.shape), int(draw.choice((300, 1 << 20, 1 << 31)))
                array[where] = draw.integers(-most, most, where.sum())
        if "best_score" in arrays:
            arrays["best_score"] = draw.integers(0, draw.choice((1, 10_000, 1 << 31)))
        np.savez(file, **arrays)  # type: ignore[arg-type]
