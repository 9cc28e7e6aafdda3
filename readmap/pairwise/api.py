"""readmap.compare: the best local alignment of two sequences, from Python."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Gpus
from readmap.backend.team import Team
from readmap.errors import UsageError
from readmap.formats.alphabets import Alphabet
from readmap.pairwise.comparison import compare_all
from readmap.pairwise.parameters import MatchScores, CompareSettings
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
    settings = CompareSettings(MatchScores.from_gap_first(match, mismatch, gap_first, gap_extend), score_only, pruning, memory)
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
