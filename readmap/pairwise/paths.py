"""Results -> Paths: the corners of alignments in the plane of all targets and all queries, each end to end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.pairwise.alignments import DELETED, INSERTED
from readmap.pairwise.results import Results
from readmap.reads.sequences import Sequences


@dataclass(frozen=True)
class Paths:
    """Where alignments lead, by their corners: each one's in its order, then a NaN, at which a line breaks.

    Attributes:
        x, y: float64 [corners], letters of the targets and of the queries before the corner; NaN of empty alignments.
        reverse: bool [corners].
        gaps: int64 [corners], letters of the gap that begins there: of one in the query (a way to the right) above 0,
            of one in the target (a way up or down) below 0.
        boxes: float64 [4, alignments], least and greatest x, least and greatest y, without the empty ones.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    reverse: NDArray[np.bool_]
    gaps: NDArray[np.int64]
    boxes: NDArray[np.float64]


def find_paths(results: Results, queries: Sequences, targets: Sequences) -> Paths:
    """queries, targets: all, of which those of the results are some."""
    count = len(results.queries)
    across = targets.offsets[results.first_target :][:count]
    up = queries.offsets[results.first_query :][:count]
    low_y, high_y, low_x, high_x = results.places
    is_empty = low_x < 0
    starts_x: NDArray[np.float64] = np.where(is_empty, np.nan, across + low_x)
    starts_y: NDArray[np.float64] = np.where(is_empty, np.nan, up + np.where(results.reverse, high_y, low_y))

    ends = results.alignments.operation_ends
    sizes = np.diff(ends, prepend=0)
    # Each alignment has a corner before each operation, one behind the last, and the break.
    pair = np.repeat(np.arange(count), sizes + 2)
    operation = np.arange(len(pair)) - 2 * pair
    lengths, kinds = results.lengths, results.operations
    way_x = _way(lengths * (kinds != INSERTED), operation, (ends - sizes)[pair])
    way_y = _way(lengths * (kinds != DELETED), operation, (ends - sizes)[pair])
    x: NDArray[np.float64] = starts_x[pair] + way_x
    x[ends + 2 * np.arange(count) + 1] = np.nan
    signs = (kinds == DELETED).astype(np.int64) - (kinds == INSERTED)
    gaps = np.append(lengths * signs, [0, 0])[operation] * (operation < ends[pair])
    y: NDArray[np.float64] = starts_y[pair] + way_y * np.where(results.reverse, -1, 1)[pair]
    boxes = np.stack([across + low_x, across + high_x, up + low_y, up + high_y])[:, ~is_empty]
    return Paths(x, y, results.reverse[pair], gaps, boxes.astype(np.float64))


def _way(steps: NDArray[np.int64], operation: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """The steps of the operations from the first of the same alignment to before each."""
    sums = np.concatenate([[0], np.cumsum(steps)])
    way: NDArray[np.int64] = sums[np.minimum(operation, len(steps))] - sums[first]
    return way


def joined(paths: list[Paths]) -> Paths:
    """All of them, of which there is at least one."""
    return Paths(**{name: np.concatenate([vars(each)[name] for each in paths], axis=-1) for name in vars(paths[0])})
