"""Sequences of files -> Alignments on the host, by the two aligners: that of many pairs, and that of one long pair."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.compare.alignments import Alignments
from readmap.compare.parameters import Mode, Scores, Settings
from readmap.formats.sequences import Sequences

#: Is told cells of the matrix that are done, and all there are.
Progress = Callable[[int, int], None]


def align_batch(
    queries: Sequences, targets: Sequences, scores: Scores, mode: Mode, backend: Backend, score_only: bool
) -> Alignments:
    """Of query i and target i."""
    batches, letters = map(importlib.import_module, ("readmap.compare.batches", "readmap.compare.letters"))
    sides = (letters.letters_of_array(side.letters, side.offsets, backend) for side in (queries, targets))
    return _on_host(batches.align_batch(*sides, scores, mode, backend, score_only), backend)


def align_long(
    query: NDArray[np.uint8], target: NDArray[np.uint8], settings: Settings, backend: Backend, progress: Progress
) -> Alignments:
    """Of one query and one target, a local alignment."""
    if not len(query) or not len(target):
        return _nothing(settings.score_only)
    long_pairs, letters = map(importlib.import_module, ("readmap.compare.long_pairs", "readmap.compare.letters"))
    sides = (
        letters.letters_of_array(side, np.array([0, len(side)]), backend).codes[: len(side)] for side in (query, target)
    )
    found = align_long_pair(
        *sides,
        settings.scores,
        Mode.LOCAL,
        backend,
        settings.score_only,
        settings.memory,
        settings.pruning,
        progress,
        settings.checkpoint,
    )
    return _on_host(found, backend)


def _on_host(alignments: Alignments, backend: Backend) -> Alignments:
    return Alignments(*(backend.to_host(getattr(alignments, field.name)) for field in fields(Alignments)))


def _nothing(score_only: bool) -> Alignments:
    """An empty alignment."""
    zero = np.zeros(1, np.int64)
    start = zero - 1 if score_only else zero
    return Alignments(np.zeros(1, np.int32), start, zero, start, zero, zero, np.zeros(0, np.uint32))
