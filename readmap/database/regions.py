"""Find the parts of a query and its subjects that contain their best alignments, from their scores."""

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

    Aligning these parts gives the alignment of the whole sequences: the parts end where the first best alignment ends,
    and start before the start of any best alignment, so that ties are broken in the same way.
    """

    query_starts: NDArray[np.int64]
    query_ends: NDArray[np.int64]
    subject_starts: NDArray[np.int64]
    subject_ends: NDArray[np.int64]


def find_regions(
    query: Codes, subjects: Sequence[Codes], scores: NDArray[np.int32], scoring: ScanScoring, backend: Backend
) -> Regions:
    """Return the regions of a query and its subjects, as codes. scores: int32 [subjects], above 0."""
    lengths = np.array([len(subject) for subject in subjects], np.int64)
    order = np.argsort(-lengths, kind="stable")
    if not subjects:
        return Regions(lengths, lengths, lengths, lengths)
    rows, columns, _, _ = _ends(query, [subjects[i] for i in order], scores[order], scoring, backend)
    # In the reversed sequences, the starts of alignments are ends.
    backwards = [subjects[i][::-1] for i in order]
    _, _, last_rows, last_columns = _ends(query[::-1].copy(), backwards, scores[order], scoring, backend)
    found = (len(query) - 1 - last_rows, rows + 1, lengths[order] - 1 - last_columns, columns + 1)
    unsorted = np.empty((4, len(order)), np.int64)
    unsorted[:, order] = found
    return Regions(*unsorted)


def _ends(
    query: Codes, subjects: Sequence[Codes], scores: NDArray[np.int32], scoring: ScanScoring, backend: Backend
) -> tuple[NDArray[np.int64], ...]:
    """Return the result of find_ends; subjects: in order of decreasing length."""
    lengths = np.array([len(subject) for subject in subjects], np.int64)
    starts = np.cumsum(lengths) - lengths
    columns = interleave(np.concatenate(subjects), starts, lengths, backend)
    return find_ends(DeviceQuery.of(query, scoring, backend), columns, scores, backend)
