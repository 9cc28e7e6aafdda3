"""readmap.compare: the best local alignment of two sequences, from Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend, Gpus
from readmap.backend.team import Team
from readmap.errors import UsageError
from readmap.formats.alphabets import Alphabet
from readmap.pairwise.alignments import PairAlignments, join_alignments
from readmap.pairwise.comparison import compare_all
from readmap.pairwise.device_sequences import (
    Bytes,
    Integers,
    checked_lengths,
    concatenate_texts,
    sequences_from_letters,
)
from readmap.pairwise.pairs import align_pairs as align_letters
from readmap.pairwise.parameters import CompareSettings, MatchScores, Mode
from readmap.pairwise.results import Result
from readmap.reads.sequences import Sequences, checked
from readmap.strand import Strand

#: Of Python: text, bytes, or uint8 [letters].
Text = str | bytes | NDArray[np.uint8]


@dataclass(frozen=True)
class Comparison:
    """The best local alignment of two sequences.

    score: 0 where nothing is aligned.
    query_start to target_end: 0-based and half-open, in the sequences as they were given; -1 where they are unknown,
        which of a score alone are the starts (of the query's reverse complement the end), and where nothing is aligned.
    strand: 1, or -1 for the query's reverse complement.
    operations: uint32, length << 4 | operation as in BAM (1 I, 2 D, 7 =, 8 X), along the target.
    cigar: the same as text. equal, different, inserted, deleted: columns of each kind. gap_openings: gaps.
    """

    score: int
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    strand: int
    operations: NDArray[np.uint32]
    cigar: str
    equal: int
    different: int
    inserted: int
    deleted: int
    gap_openings: int

    @property
    def columns(self) -> int:
        """Alignment length in columns, gaps included."""
        return self.equal + self.different + self.inserted + self.deleted

    @property
    def identity(self) -> float | None:
        """The share of columns with equal letters; None where there are none."""
        return self.equal / self.columns if self.columns else None


def compare(
    query: Text,
    target: Text,
    *,
    match: int = 1,
    mismatch: int = 3,
    gap_first: int = 5,
    gap_extend: int = 2,
    strand: str = Strand.FORWARD,
    score_only: bool = False,
    pruning: bool = True,
    memory: int | None = None,
    device: str = "auto",
    gpus: Gpus = 1,
    threads: int | None = None,
) -> Comparison:
    """The first of the best local alignments of two sequences of any length, as `readmap compare` finds it.

    gap_first, gap_extend: penalties of a gap's first letter, and of each further one.
    strand: of the query: forward, reverse, or both, of which the better one is reported.
    score_only: no alignment, only its score and end. pruning, memory: see CompareSettings; they change no result.
    device, threads: as the command's. gpus: how many, or the numbers of some, or "all".
    Raises DataError where a sequence has what is no nucleotide, UsageError for options that are none.
    """
    if strand not in tuple(Strand):
        raise UsageError(f"strand is {strand!r}, expected {', '.join(Strand)}")
    settings = CompareSettings(
        MatchScores.from_gap_first(match, mismatch, gap_first, gap_extend), score_only, pruning, memory
    )
    sides = _sequences("query", query), _sequences("target", target)
    with Team.open(device, gpus, threads) as team:
        (results,) = compare_all(*sides, settings, Strand(strand), team, lambda done, total: None)
    return _of_result(*results)


def _sequences(name: str, text: Text) -> Sequences:
    return Sequences.of([name.encode()], [checked(name, text, Alphabet.NUCLEOTIDES)])


def _of_result(result: Result) -> Comparison:
    strand, cigar = -1 if result.reverse else 1, result.cigar.decode()
    own: dict[str, Any] = {"strand": strand, "cigar": cigar, "gap_openings": result.gap_openings}
    names = {field.name for field in fields(Comparison)} - own.keys()
    return Comparison(**{name: getattr(result, name) for name in names}, **own)


#: All letters behind each other, uint8, and where each sequence begins in them and the last one ends, int64.
Given = tuple[Bytes, Integers]

#: Texts, or the same as arrays.
SequenceInput = Iterable[str | bytes] | Given


def align_pairs(
    queries: SequenceInput,
    targets: SequenceInput,
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
    column_ranges = {
        int(cells.searchsorted(cells[-1] * number / len(team))) for number in range(1, len(team)) if len(cells)
    }
    bounds = [0, *sorted(column_ranges - {0}), len(cells)]
    parts = list(team.run_tasks(partial(align, first, end) for first, end in pairwise(bounds)))
    return join_alignments(parts) if len(parts) > 1 else parts[0]


def _mode(name: str) -> Mode:
    try:
        return Mode(name)
    except ValueError:
        raise UsageError(f"mode is {name}, expected one of {', '.join(Mode)}") from None


def _array(sequences: SequenceInput) -> Given:
    if isinstance(sequences, tuple) and len(sequences) == 2 and not isinstance(sequences[0], str | bytes):
        return sequences
    return concatenate_texts(sequences)


def _part(side: Given, first: int, end: int) -> Given:
    """The sequences from `first` to before `end`."""
    letters, offsets = side
    own = offsets[first : end + 1]
    return letters[own[0] : own[-1]], own - own[0]
