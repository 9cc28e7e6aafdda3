"""readmap.align_pairs: pairs of sequences in, arrays out, from Python."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import pairwise

import numpy as np

from readmap.backend import Backend, Gpus
from readmap.backend.team import Team
from readmap.errors import UsageError
from readmap.pairwise.alignments import PairAlignments, joined
from readmap.pairwise.device_sequences import Bytes, Integers, concatenate_texts, checked_lengths, sequences_from_letters
from readmap.pairwise.pairs import align_pairs as align_letters
from readmap.pairwise.parameters import Mode, MatchScores

#: All letters behind each other, uint8, and where each sequence begins in them and the last one ends, int64.
Given = tuple[Bytes, Integers]

#: Texts, or the same as arrays.
Sequences = Iterable[str | bytes] | Given


def align_pairs(
    queries: Sequences,
    targets: Sequences,
    *,
    match: int = 1,
    mismatch: int = 3,
    gap_first: int = 5,
    gap_extend: int = 2,
    mode: str = "local",
    score_only: bool = False,
    device: str = "auto",
    gpus: Gpus = 1,
    threads: int | None = None,
) -> PairAlignments:
    """The alignment of query i with target i, for all of them, as arrays of the host in their order.

    >>> import readmap
    >>> found = readmap.align_pairs(["GATTACA", "ACGT"], ["TTGATTTACATT", "ACGTT"], mode="semiglobal")
    >>> found.scores.tolist()
    [2, 4]
    >>> found.cigars()
    ['2=1D5=', '4=']
    >>> found.target_starts.tolist(), found.target_ends.tolist()
    ([2, 0], [10, 4])

    queries, targets: texts, or a pair of arrays: all letters behind each other, uint8, and their offsets, int64 with
        one more than there are sequences. Letters of either case, U for T; other letters than A, C, G and T match none.
    match, mismatch: what a pair of letters earns and what it costs.
    gap_first, gap_extend: what the first letter of a gap costs, and every other one; equal for linear gaps.
    mode: local, global, or semiglobal: all of the query with any part of the target.
    score_only: without starts and CIGARs, in less time.
    device, threads: as of `Aligner`. gpus: how many, or the numbers of some, or "all".

    Raises UsageError where the numbers of queries and targets differ or an argument is none of these, BackendError
    where the device cannot be used.
    """
    chosen = _mode(mode)
    scores = MatchScores.from_gap_first(match, mismatch, gap_first, gap_extend)
    with Team.open(device, gpus, threads) as team:
        return align_arrays(_array(queries), _array(targets), scores, chosen, score_only, team)


def align_arrays(
    queries: Given, targets: Given, scores: MatchScores, mode: Mode, score_only: bool, team: Team
) -> PairAlignments:
    """The alignments, on the host, of which each device makes a part with about as many cells."""
    rows, columns = (checked_lengths(offsets, len(letters)) for letters, offsets in (queries, targets))
    if len(rows) != len(columns):
        raise UsageError(f"expected as many targets as queries, found {len(columns)} and {len(rows)}")
    scores.check_score_range(rows, columns, mode)

    def align(first: int, end: int, backend: Backend) -> PairAlignments:
        given, others = (sequences_from_letters(*_part(side, first, end), backend) for side in (queries, targets))
        return align_letters(given, others, scores, mode, backend, score_only).to_host(backend)

    cells = np.cumsum(rows * columns)
    column_ranges = {int(cells.searchsorted(cells[-1] * number / len(team))) for number in range(1, len(team)) if len(cells)}
    bounds = [0, *sorted(column_ranges - {0}), len(cells)]
    parts = list(team.divide(partial(align, first, end) for first, end in pairwise(bounds)))
    return joined(parts) if len(parts) > 1 else parts[0]


def _mode(name: str) -> Mode:
    try:
        return Mode(name)
    except ValueError:
        raise UsageError(f"mode is {name}, expected one of {', '.join(Mode)}") from None


def _array(sequences: Sequences) -> Given:
    if isinstance(sequences, tuple) and len(sequences) == 2 and not isinstance(sequences[0], str | bytes):
        return sequences
    return concatenate_texts(sequences)


def _part(side: Given, first: int, end: int) -> Given:
    """The sequences from `first` to before `end`."""
    letters, offsets = side
    own = offsets[first : end + 1]
    return letters[own[0] : own[-1]], own - own[0]
