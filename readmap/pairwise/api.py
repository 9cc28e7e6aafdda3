"""The Python functions readmap.compare and readmap.align_pairs."""

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
from readmap.pairwise.batches import align_pairs as align_letters
from readmap.pairwise.comparison import compare_all
from readmap.pairwise.device_sequences import (
    Bytes,
    Integers,
    checked_lengths,
    concatenate_texts,
    sequences_from_letters,
)
from readmap.pairwise.parameters import CompareSettings, MatchScores, Mode
from readmap.reads.sequences import Sequences, normalize_letters
from readmap.strand import Strand

#: A sequence as accepted from Python: text, bytes, or uint8 [letters].
Text = str | bytes | NDArray[np.uint8]


@dataclass(frozen=True)
class Comparison:
    """The best local alignment of two sequences.

    Attributes
    ----------
    score : int
        0 if nothing is aligned.
    query_start, query_end, target_start, target_end : int
        0-based, half-open, in the sequences as given. -1 if nothing is aligned. With `score_only` the starts are -1;
        on the reverse strand `query_end` is -1 instead of `query_start`.
    strand : int
        1, or -1 if the reverse complement of the query is aligned.
    operations : uint32 array
        length << 4 | operation as in BAM (1 I, 2 D, 7 =, 8 X), in the direction of the target.
    cigar : str
        `operations` as text.
    equal, different, inserted, deleted : int
        Numbers of columns of each kind.
    gap_openings : int
        Number of gaps.
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
        """Fraction of columns with equal letters; None if the alignment has no columns."""
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
    """Return the best local alignment of two sequences of any length (Smith-Waterman), as `readmap compare` does.

    Parameters
    ----------
    query, target : str, bytes or uint8 array
        Nucleotides, IUPAC codes allowed. Only A, C, G and T (or U) can match.
    match, mismatch : int
        Reward of a match, and penalty of a mismatch as a positive number.
    gap_first, gap_extend : int
        Penalties of the first and of each further letter of a gap.
    strand : {"forward", "reverse", "both"}
        Strand of the query to align. "both" returns the alignment with the higher score, the forward one in a tie.
    score_only : bool
        Compute the score and the end of the alignment only.
    pruning : bool
        Skip parts of the matrix that cannot contain the best alignment. Changes the speed, not the result.
    memory : int, optional
        Bytes for the special rows and columns used by the traceback. Changes the speed, not the result.
        Default: a quarter of the free memory of a GPU, or 1 GiB on the CPU.
    device : str
        "auto", "cpu", "cuda" or "cuda:N", as for the option --device.
    gpus : int, sequence of int or "all"
        Number or indices of the GPUs to use.
    threads : int, optional
        Number of CPU threads. Default: all processors available to this process.

    Returns
    -------
    Comparison

    Raises
    ------
    DataError
        If a sequence contains a character that is not a nucleotide code.
    UsageError
        If an argument is invalid.
    """
    if strand not in tuple(Strand):
        raise UsageError(f"strand is {strand!r}, expected {', '.join(Strand)}")
    scores = MatchScores.from_gap_first(match, mismatch, gap_first, gap_extend)
    settings = CompareSettings(scores, score_only, pruning, memory)
    named = {"query": query, "target": target}
    left, right = (
        Sequences.of([name.encode()], [normalize_letters(name, named[name], Alphabet.NUCLEOTIDES)]) for name in named
    )
    with Team.open(device, gpus, threads) as team:
        (results,) = compare_all(left, right, settings, Strand(strand), team, lambda done, total: None)
    (result,) = results
    own: dict[str, Any] = {"strand": -1 if result.reverse else 1, "cigar": result.cigar.decode()}
    names = {field.name for field in fields(Comparison)} - own.keys()
    return Comparison(**{name: getattr(result, name) for name in names}, **own)


#: All letters concatenated, uint8, and the offsets of the sequences, int64 [sequences + 1].
SequenceArrays = tuple[Bytes, Integers]

#: Sequences as text or as arrays.
SequenceInput = Iterable[str | bytes] | SequenceArrays


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
    """Align query i with target i for every i, and return the alignments in the order of the input.

    Parameters
    ----------
    queries, targets : iterable of str or bytes, or pair of arrays
        Equal numbers of queries and targets. A pair of arrays is all letters concatenated, uint8 [letters], and their
        offsets, int64 [sequences + 1]. Letters may be upper or lower case, U stands for T, and letters other than A, C,
        G and T match nothing.
    match, mismatch : int
        Reward of a match, and penalty of a mismatch as a positive number.
    gap_first, gap_extend : int
        Penalties of the first and of each further letter of a gap; equal values give linear gap costs.
    mode : {"local", "global", "semiglobal"}
        Semiglobal aligns the whole query with any part of the target.
    score_only : bool
        Compute scores and ends only, which takes less time.
    device, gpus, threads
        As in `compare`.

    Returns
    -------
    PairAlignments
        Arrays on the host.

    Raises
    ------
    UsageError
        If the numbers of queries and targets differ, or an argument is invalid.
    BackendError
        If the device cannot be used.

    Examples
    --------
    >>> import readmap
    >>> found = readmap.align_pairs(["GATTACA", "ACGT"], ["TTGATTTACATT", "ACGTT"], mode="semiglobal")
    >>> found.scores.tolist()
    [2, 4]
    >>> found.cigars()
    ['2=1D5=', '4=']
    >>> found.target_starts.tolist(), found.target_ends.tolist()
    ([2, 0], [10, 4])
    """
    if mode not in tuple(Mode):
        raise UsageError(f"mode is {mode}, expected one of {', '.join(Mode)}")
    scores = MatchScores.from_gap_first(match, mismatch, gap_first, gap_extend)
    with Team.open(device, gpus, threads) as team:
        return align_arrays(_as_arrays(queries), _as_arrays(targets), scores, Mode(mode), score_only, team)


def align_arrays(
    queries: SequenceArrays, targets: SequenceArrays, scores: MatchScores, mode: Mode, score_only: bool, team: Team
) -> PairAlignments:
    """Align query i with target i on all devices, each with a similar number of cells; return arrays on the host."""
    rows, columns = (checked_lengths(offsets, len(letters)) for letters, offsets in (queries, targets))
    if len(rows) != len(columns):
        raise UsageError(f"expected equal numbers of queries and targets, found {len(rows)} and {len(columns)}")
    scores.check_score_range(rows, columns, mode)

    def align(first: int, end: int, backend: Backend) -> PairAlignments:
        query, target = (sequences_from_letters(*_part(side, first, end), backend) for side in (queries, targets))
        return align_letters(query, target, scores, mode, backend, score_only).to_host(backend)

    cells = np.cumsum(rows * columns)
    cuts = {int(cells.searchsorted(cells[-1] * i / len(team))) for i in range(1, len(team)) if len(cells)}
    bounds = [0, *sorted(cuts - {0}), len(cells)]
    parts = list(team.run_tasks(partial(align, first, end) for first, end in pairwise(bounds)))
    return join_alignments(parts) if len(parts) > 1 else parts[0]


def _as_arrays(sequences: SequenceInput) -> SequenceArrays:
    if isinstance(sequences, tuple) and len(sequences) == 2 and not isinstance(sequences[0], str | bytes):
        return sequences
    return concatenate_texts(sequences)


def _part(side: SequenceArrays, first: int, end: int) -> SequenceArrays:
    """Return the letters of sequences [first, end), and their offsets, which start at 0."""
    letters, offsets = side
    own = offsets[first : end + 1]
    return letters[own[0] : own[-1]], own - own[0]
