"""readmap.align_pairs: pairs of sequences in, arrays out, from Python."""

from __future__ import annotations

from collections.abc import Iterable

from readmap.backend import Backend, open_backend
from readmap.errors import UsageError
from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.letters import Bytes, Integers, Letters, letters_of_array, letters_of_texts
from readmap.pairwise.pairs import align_pairs as align_letters
from readmap.pairwise.parameters import Mode, Scores

#: Texts, or all letters behind each other, uint8, and where each sequence begins in them and the last one ends, int64.
Sequences = Iterable[str | bytes] | tuple[Bytes, Integers]


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
    device, threads: as of `Aligner`.

    Raises UsageError where the numbers of queries and targets differ or an argument is none of these, BackendError
    where the device cannot be used.
    """
    chosen = _mode(mode)
    scores = Scores.of_first_gap(match, mismatch, gap_first, gap_extend)
    backend = open_backend(device, threads)
    sides = _letters(queries, backend), _letters(targets, backend)
    if len(sides[0]) != len(sides[1]):
        raise UsageError(f"expected as many targets as queries, found {len(sides[1])} and {len(sides[0])}")
    scores.expect_room(sides[0].lengths, sides[1].lengths, chosen)
    return align_letters(*sides, scores, chosen, backend, score_only).on_host(backend)


def _mode(name: str) -> Mode:
    try:
        return Mode(name)
    except ValueError:
        raise UsageError(f"mode is {name}, expected one of {', '.join(Mode)}") from None


def _letters(sequences: Sequences, backend: Backend) -> Letters:
    if isinstance(sequences, tuple) and len(sequences) == 2 and not isinstance(sequences[0], str | bytes):
        return letters_of_array(*sequences, backend)
    return letters_of_texts(sequences, backend)
