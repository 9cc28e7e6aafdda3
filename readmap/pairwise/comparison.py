"""Sequences -> Results: every query with every target, or pair by pair, on the strands that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend
from readmap.backend.team import Team
from readmap.errors import DataError, InternalError
from readmap.formats.wording import decode_name
from readmap.pairwise import long_pairs, pairs
from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.checker import check
from readmap.pairwise.device_sequences import sequences_from_letters
from readmap.pairwise.matrix import DPMatrix
from readmap.pairwise.parameters import CompareSettings, Mode, ScoringScheme
from readmap.pairwise.results import Results
from readmap.reads.sequences import Sequences
from readmap.strand import Strand

#: Hears of the cells of the matrix that are done, and of all there are.
Progress = Callable[[int, int], None]


def align_batch(
    queries: Sequences, targets: Sequences, scores: ScoringScheme, mode: Mode, backend: Backend, score_only: bool
) -> PairAlignments:
    """The alignment of query i with target i, for all of them."""
    rows, columns = (sequences_from_letters(side.letters, side.offsets, backend) for side in (queries, targets))
    return pairs.align_pairs(rows, columns, scores, mode, backend, score_only).to_host(backend)


def align_long_pair(
    query: NDArray[np.uint8], target: NDArray[np.uint8], settings: CompareSettings, team: Team, progress: Progress
) -> PairAlignments:
    """The local alignment of one query with one target."""

    def matrix(backend: Backend) -> DPMatrix:
        return DPMatrix(_codes(query, backend), _codes(target, backend), settings.scores, Mode.LOCAL, backend)

    return long_pairs.align_long(team.map(matrix, team.backends), settings, team, progress)


def _codes(letters: NDArray[np.uint8], backend: Backend) -> Array:
    return sequences_from_letters(letters, np.array([0, len(letters)]), backend).codes[: len(letters)]


#: Most of a batch of pairs, so that its arrays are small beside the files', and progress is reported now and then.
BATCH_PAIRS = 1 << 16
BATCH_LETTERS = 1 << 26
BATCH_CELLS = 1 << 38


def count_cells(queries: Sequences, targets: Sequences, strand: Strand, in_pairs: bool) -> int:
    """The cells of all matrices."""
    if in_pairs:
        return int(queries.lengths @ targets.lengths) * strand.rows
    return len(queries.letters) * len(targets.letters) * strand.rows


class _Cells:
    """Counts cells that are done, of all."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total, self._progress, self._done = total, progress, 0

    def report(self, part: int, _: int) -> None:
        """Report that so many of the comparison in hand are done."""
        self._progress(self._done + part, self._total)

    def add(self, cells: int) -> None:
        """Count a comparison that is done."""
        self._done += cells
        self.report(0, 0)


def compare_all(
    queries: Sequences, targets: Sequences, settings: CompareSettings, strand: Strand, team: Team, progress: Progress
) -> Iterator[Results]:
    """The local alignment of every query with every target, one at a time, checked.

    progress: hears of cells. Of a checkpoint each pair and strand has a folder, as 1-1-forward.
    Raises UsageError where scores may not fit.
    """
    for query in queries.lengths:
        settings.scores.check_score_range(np.full(len(targets), query), targets.lengths, Mode.LOCAL)
    cells = _Cells(count_cells(queries, targets, strand, in_pairs=False), progress)
    for i in range(len(queries)):
        ways = _ways(queries.part(i, i + 1), strand)
        for j in range(len(targets)):
            own = settings
            if settings.checkpoint:
                own = replace(settings, checkpoint=settings.checkpoint / f"{i + 1}-{j + 1}")
            yield _compare_long(ways, targets.part(j, j + 1), own, (i, j), team, cells)


def _compare_long(
    ways: dict[bool, Sequences],
    target: Sequences,
    settings: CompareSettings,
    numbers: tuple[int, int],
    team: Team,
    cells: _Cells,
) -> Results:
    """The better alignment of one query, on its strands, with one target; numbers: theirs."""
    found, taken_up = [], None
    for is_reverse, query in ways.items():
        own = settings
        if settings.checkpoint:
            strand = Strand.REVERSE if is_reverse else Strand.FORWARD
            kept = settings.checkpoint.with_name(f"{settings.checkpoint.name}-{strand}")
            own, taken_up = replace(settings, checkpoint=kept), kept if kept.exists() else taken_up
        alignments = align_long_pair(query.letters, target.letters, own, team, cells.report)
        cells.add(len(query.letters) * len(target.letters))
        found.append(_results(query, target, is_reverse, alignments, settings.score_only, numbers))
    try:
        return _checked(found, settings.scores, Mode.LOCAL)
    except InternalError as error:
        if taken_up is None:
            raise
        raise DataError(
            f"{taken_up}: expected work on this comparison, found what contradicts it ({error}): remove the folder"
        ) from error


def compare_pairs(
    queries: Sequences,
    targets: Sequences,
    settings: CompareSettings,
    mode: Mode,
    strand: Strand,
    team: Team,
    progress: Progress,
) -> Iterator[Results]:
    """The alignments of query i with target i, in batches, checked.

    settings: of which the scores and score_only count. progress: hears of cells.
    Raises DataError where one of them has no partner, UsageError where scores may not fit.
    """
    check_same_count(queries, targets)
    settings.scores.check_score_range(queries.lengths, targets.lengths, mode)
    cells = _Cells(count_cells(queries, targets, strand, in_pairs=True), progress)
    works = (
        partial(_compare_batch, queries, targets, pairs, settings, mode, strand)
        for pairs in _batches(queries, targets, len(team))
    )
    for results in team.run_tasks(works):
        cells.add(int(results.queries.lengths @ results.targets.lengths) * strand.rows)
        yield results


def _compare_batch(
    queries: Sequences,
    targets: Sequences,
    pairs: tuple[int, int],
    settings: CompareSettings,
    mode: Mode,
    strand: Strand,
    backend: Backend,
) -> Results:
    """The better alignments of some pairs, from the first to before the last, on their strands."""
    scores, score_only, (first, end) = settings.scores, settings.score_only, pairs
    part, found = targets.part(first, end), []
    for is_reverse, query in _ways(queries.part(first, end), strand).items():
        alignments = align_batch(query, part, scores, mode, backend, score_only)
        found.append(_results(query, part, is_reverse, alignments, score_only, (first, first)))
    return _checked(found, scores, mode)


def _ways(queries: Sequences, strand: Strand) -> dict[bool, Sequences]:
    """The queries as they are aligned, by whether that is their reverse complements."""
    ways = {}
    if strand is not Strand.REVERSE:
        ways[False] = queries
    if strand is not Strand.FORWARD:
        ways[True] = queries.reverse_complements()
    return ways


def _results(
    queries: Sequences,
    targets: Sequences,
    is_reverse: bool,
    found: PairAlignments,
    score_only: bool,
    numbers: tuple[int, int],
) -> Results:
    return Results(queries, targets, np.full(len(queries), is_reverse), found, score_only, *numbers)


def _checked(found: list[Results], scores: ScoringScheme, mode: Mode) -> Results:
    """The results of one strand, or the better ones of two."""
    results = _better(*found) if len(found) == 2 else found[0]
    check(results, scores, mode)
    return results


def _better(forward: Results, reverse: Results) -> Results:
    """The result of each pair with the better score, the forward one where they tie."""
    chosen = reverse.alignments.scores > forward.alignments.scores
    if not chosen.any():
        return forward
    if chosen.all():
        return reverse
    each_letter = np.repeat(chosen, forward.queries.lengths)
    letters = np.where(each_letter, reverse.queries.letters, forward.queries.letters)
    queries = replace(forward.queries, letters=letters)
    alignments = _choose(chosen, forward.alignments, reverse.alignments)
    return replace(forward, queries=queries, reverse=chosen, alignments=alignments)


def _choose(chosen: NDArray[np.bool_], these: PairAlignments, those: PairAlignments) -> PairAlignments:
    """Alignments of `those` where they are chosen, and of `these` elsewhere."""
    counts = [np.diff(each.operation_ends, prepend=0) for each in (these, those)]
    kept = np.where(chosen, counts[1], counts[0])
    operations = np.empty(int(kept.sum()), np.uint32)
    is_chosen = np.repeat(chosen, kept)
    operations[is_chosen] = those.operations[np.repeat(chosen, counts[1])]
    operations[~is_chosen] = these.operations[np.repeat(~chosen, counts[0])]
    ends = {"operation_ends": np.cumsum(kept, dtype=np.int64), "operations": operations}
    others = vars(these).keys() - ends.keys()
    return PairAlignments(**{name: np.where(chosen, vars(those)[name], vars(these)[name]) for name in others}, **ends)


def _batches(queries: Sequences, targets: Sequences, devices: int) -> Iterator[tuple[int, int]]:
    """First pairs and ends of batches that keep to the limits; a pair too large for one has it for itself.

    No batch has more than a device's part of all pairs, or of all cells.
    """
    letters, cells = queries.lengths + targets.lengths, queries.lengths * targets.lengths
    limits = ((letters, BATCH_LETTERS), (cells, min(BATCH_CELLS, -(-int(cells.sum()) // devices))))
    sums = [(np.concatenate([[0], np.cumsum(values)]), most) for values, most in limits]
    most_pairs = min(BATCH_PAIRS, -(-len(queries) // devices))
    first = 0
    while first < len(queries):
        ends = [int(sum.searchsorted(sum[first] + most, "right")) - 1 for sum, most in sums]
        end = max(first + 1, min(first + most_pairs, len(queries), *ends))
        yield first, end
        first = end


def check_same_count(queries: Sequences, targets: Sequences) -> None:
    """Raise DataError that names the first query or target without a partner."""
    if len(queries) != len(targets):
        longer, shorter = (queries, targets) if len(queries) > len(targets) else (targets, queries)
        number = len(shorter) + 1
        name = decode_name(longer.names[number - 1])
        raise DataError(
            f"{len(queries):,} queries and {len(targets):,} targets, expected as many: record {number} ({name}) "
            f"of the {'targets' if longer is targets else 'queries'} has no partner"
        )
