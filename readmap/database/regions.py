"""A query, some subjects and what they score -> the parts of both that hold their best alignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.database.interleaving import interleave
from readmap.database.parameters import ScanScoring
from readmap.database.scores import DeviceQuery, find_ends

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Regions:
    """Parts of the query and of each subject, int64 [subjects], half-open.

    An alignment of these parts alone is that of the whole sequences: they end where the first best alignment does, and
    begin before all that begin a best one, so that wherever paths part the parts have what the whole has.
    """

    query_starts: NDArray[np.int64]
    query_ends: NDArray[np.int64]
    subject_starts: NDArray[np.int64]
    subject_ends: NDArray[np.int64]


def find_regions(
    query: Codes, subjects: Sequence[Codes], scores: NDArray[np.int32], scoring: ScanScoring, backend: Backend
) -> Regions:
    """The regions of a query and subjects, as codes; scores: int32 [subjects], of their best alignments, above 0."""
    lengths = np.array([len(subject) for subject in subjects], np.int64)
    order = np.argsort(-lengths, kind="stable")
    if not subjects:
        return Regions(lengths, lengths, lengths, lengths)
    rows, columns, _, _ = _ends(query, [subjects[i] for i in order], scores[order], scoring, backend)
    # Backwards what begins an alignment ends it.
    backwards = [subjects[i][::-1] for i in order]
    _, _, last_rows, last_columns = _ends(query[::-1].copy(), backwards, scores[order], scoring, backend)
    found = (len(query) - 1 - last_rows, rows + 1, lengths[order] - 1 - last_columns, columns + 1)
    unsorted = np.empty((4, len(order)), np.int64)
    unsorted[:, order] = found
    return Regions(*unsorted)


def _ends(
    query: Codes, subjects: Sequence[Codes], scores: NDArray[np.int32], scoring: ScanScoring, backend: Backend
) -> tuple[NDArray[np.int64], ...]:
    """The ends that find_ends finds; subjects: the longest one first."""
    lengths = np.array([len(subject) for subject in subjects], np.int64)
    starts = np.cumsum(lengths) - lengths
    columns = interleave(np.concatenate(subjects), starts, lengths, backend)
    return find_ends(DeviceQuery.of(query, scoring, backend), columns, scores, backend)
