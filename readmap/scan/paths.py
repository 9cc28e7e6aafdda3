"""The hits of queries -> how each of them is aligned."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.compare.alignments import Alignments
from readmap.compare.checker import check_substitution
from readmap.compare.letters import letters_of_codes
from readmap.compare.pairs import align_pairs
from readmap.compare.parameters import Mode, Substitution
from readmap.compare.results import Results
from readmap.errors import InternalError
from readmap.formats.sequences import Sequences
from readmap.scan.parameters import Costs

#: Letters of pairs that are aligned together.
BATCH_LETTERS = 1 << 25


class Pair(NamedTuple):
    """A query and a subject, as codes, and what the scan has found that they score."""

    query: NDArray[np.uint8]
    subject: NDArray[np.uint8]
    score: int


def align(pairs: Sequence[Pair], counts: Sequence[int], costs: Costs, backend: Backend) -> list[Alignments]:
    """The alignments of the first counts[0] pairs, of the next counts[1], and so on, on the host.

    Raises InternalError where one does not score what the scan has found.
    """
    scores = costs.substitution()
    batches = [_align_batch(pairs[first:end], scores, backend) for first, end in pairwise(_batches(pairs))]
    ends = np.cumsum([0, *counts])
    whole = _joined(batches)
    return [_part(whole, int(first), int(end)) for first, end in pairwise(ends)]


def _batches(pairs: Sequence[Pair]) -> list[int]:
    """Where batches begin, and the end of the last one."""
    cuts, letters = [0], 0
    for number, pair in enumerate(pairs):
        letters += len(pair.query) + len(pair.subject)
        if letters > BATCH_LETTERS and number > cuts[-1]:
            cuts.append(number)
            letters = len(pair.query) + len(pair.subject)
    return [*cuts, len(pairs)]


def _align_batch(pairs: Sequence[Pair], scores: Substitution, backend: Backend) -> Alignments:
    queries, subjects = _sequences([pair.query for pair in pairs]), _sequences([pair.subject for pair in pairs])
    codes, targets = (letters_of_codes(side.letters, side.offsets, backend) for side in (queries, subjects))
    found = align_pairs(codes, targets, scores, Mode.LOCAL, backend).on_host(backend)
    expected = np.array([pair.score for pair in pairs], np.int32)
    wrong = np.flatnonzero(found.scores != expected)
    if len(wrong):
        raise InternalError(f"a hit scores {expected[wrong[0]]}, and its alignment {found.scores[wrong[0]]}")
    forward = np.zeros(len(pairs), np.bool_)
    check_substitution(Results(queries, subjects, forward, found, False, 0, 0), scores)
    return found


def _sequences(codes: Sequence[NDArray[np.uint8]]) -> Sequences:
    """Codes in the place of letters, with numbers for names."""
    offsets = np.cumsum([0, *map(len, codes)], dtype=np.int64)
    return Sequences([b"%d" % number for number in range(len(codes))], np.concatenate([_NONE, *codes]), offsets)


_NONE = np.zeros(0, np.uint8)


def _joined(batches: Sequence[Alignments]) -> Alignments:
    counts = [np.diff(batch.operation_ends, prepend=0) for batch in batches]
    joined = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in vars(batches[0])}
    return Alignments(**joined | {"operation_ends": np.cumsum(np.concatenate(counts))})


def _part(whole: Alignments, first: int, end: int) -> Alignments:
    """The alignments from `first` to before `end`."""
    begin = int(whole.operation_ends[first - 1]) if first else 0
    stop = int(whole.operation_ends[end - 1]) if end else 0
    part = {name: array[first:end] for name, array in vars(whole).items()}
    return Alignments(
        **part | {"operation_ends": part["operation_ends"] - begin, "operations": whole.operations[begin:stop]}
    )
