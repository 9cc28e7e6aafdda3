"""Compare every query with every target, or pair by pair, on the requested strands (Sequences -> Results)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend
from readmap.backend.team import Team
from readmap.errors import DataError, InternalError
from readmap.formats.wording import decode_name
from readmap.pairwise import batches, long_pairs
from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.checker import check
from readmap.pairwise.device_sequences import sequences_from_letters
from readmap.pairwise.matrix import DPMatrix
from readmap.pairwise.parameters import CompareSettings, Mode, ScoringScheme
from readmap.pairwise.results import Results
from readmap.reads.sequences import Sequences
from readmap.strand import Strand

#: Called with the number of cells computed so far and their total.
Progress = Callable[[int, int], None]


def align_batch(
    queries: Sequences, targets: Sequences, scores: ScoringScheme, mode: Mode, backend: Backend, score_only: bool
) -> PairAlignments:
    """Align query i with target i for every i; return host arrays."""
    rows, columns = (sequences_from_letters(side.letters, side.offsets, backend) for side in (queries, targets))
    return batches.align_pairs(rows, columns, scores, mode, backend, score_only).to_host(backend)


def align_long_pair(
    query: NDArray[np.uint8], target: NDArray[np.uint8], settings: CompareSettings, team: Team, progress: Progress
) -> PairAlignments:
    """Align one query with one target locally, on all devices of the team; return host arrays."""

    def matrix(backend: Backend) -> DPMatrix:
        return DPMatrix(_codes(query, backend), _codes(target, backend), settings.scores, Mode.LOCAL, backend)

    return long_pairs.align_long(team.map(matrix, team.backends), settings, team, progress)


def _codes(letters: NDArray[np.uint8], backend: Backend) -> Array:
    return sequences_from_letters(letters, np.array([0, len(letters)]), backend).codes[: len(letters)]


#: Limits of a batch of pairs: its arrays stay small compared with the input, and progress is reported regularly.
MAX_BATCH_PAIRS = 1 << 16
MAX_BATCH_LETTERS = 1 << 26
MAX_BATCH_CELLS = 1 << 38


def count_cells(queries: Sequences, targets: Sequences, strand: Strand, in_pairs: bool) -> int:
    """Return the matrix cells of all comparisons; in_pairs: query i with target i, else all with all."""
    if in_pairs:
        return int(queries.lengths @ targets.lengths) * strand.rows
    return len(queries.letters) * len(targets.letters) * strand.rows


class _Cells:
    """Adds up the cells computed so far, and reports them to `progress`."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total, self._progress, self._done = total, progress, 0

    def report(self, part: int, _: int) -> None:
        self._progress(self._done + part, self._total)

    def add(self, cells: int) -> None:
        self._done += cells
        self.report(0, 0)


def compare_all(
    queries: Sequences, targets: Sequences, settings: CompareSettings, strand: Strand, team: Team, progress: Progress
) -> Iterator[Results]:
    """Yield the checked local alignment of every query with every target, one pair at a time.

    progress: called with the cells computed so far and their total. Each pair and strand has its own folder in the
    checkpoint folder, such as 1-1-forward. Raises UsageError if scores may not fit in 32 bits.
    """
    for query in queries.lengths:
        settings.scores.check_score_range(np.full(len(targets), query), targets.lengths, Mode.LOCAL)
    cells = _Cells(count_cells(queries, targets, strand, in_pairs=False), progress)
    for i in range(len(queries)):
        queries_by_strand = _by_strand(queries.part(i, i + 1), strand)
        for j in range(len(targets)):
            own = settings
            if settings.checkpoint:
                own = replace(settings, checkpoint=settings.checkpoint / f"{i + 1}-{j + 1}")
            yield _compare_long(queries_by_strand, targets.part(j, j + 1), own, (i, j), team, cells)


def _compare_long(
    queries_by_strand: dict[bool, Sequences],
    target: Sequences,
    settings: CompareSettings,
    indices: tuple[int, int],
    team: Team,
    cells: _Cells,
) -> Results:
    """Return the better of a query's alignments with one target.

    queries_by_strand: one query, keyed by is_reverse. indices: of query and target in their files. cells: for progress.
    """
    found, resumed = [], None
    for is_reverse, query in queries_by_strand.items():
        own = settings
        if settings.checkpoint:
            strand = Strand.REVERSE if is_reverse else Strand.FORWARD
            kept = settings.checkpoint.with_name(f"{settings.checkpoint.name}-{strand}")
            own, resumed = replace(settings, checkpoint=kept), kept if kept.exists() else resumed
        alignments = align_long_pair(query.letters, target.letters, own, team, cells.report)
        cells.add(len(query.letters) * len(target.letters))
        reverse = np.full(1, is_reverse)
        found.append(Results(query, target, reverse, alignments, settings.score_only, *indices))
    try:
        return _checked(found, settings.scores, Mode.LOCAL)
    except InternalError as error:
        if resumed is None:
            raise
        found_instead = f"found contradictory data ({error}): remove the folder"
        raise DataError(f"{resumed}: expected a checkpoint of this comparison, {found_instead}") from error


def compare_pairs(
    queries: Sequences,
    targets: Sequences,
    settings: CompareSettings,
    mode: Mode,
    strand: Strand,
    team: Team,
    progress: Progress,
) -> Iterator[Results]:
    """Yield the checked alignments of query i with target i, in batches, by the scores and score_only of the settings.

    Raises DataError if the numbers of queries and targets differ, UsageError if scores may not fit in 32 bits.
    """
    check_same_count(queries, targets)
    settings.scores.check_score_range(queries.lengths, targets.lengths, mode)
    cells = _Cells(count_cells(queries, targets, strand, in_pairs=True), progress)
    compare = partial(_compare_batch, queries, targets, settings, mode, strand)
    for results in team.run_tasks(partial(compare, *bounds) for bounds in _batches(queries, targets, len(team))):
        cells.add(int(results.queries.lengths @ results.targets.lengths) * strand.rows)
        yield results


def _compare_batch(
    queries: Sequences,
    targets: Sequences,
    settings: CompareSettings,
    mode: Mode,
    strand: Strand,
    first: int,
    end: int,
    backend: Backend,
) -> Results:
    """Return the better alignments, on the requested strands, of the pairs [first, end)."""
    scores, score_only = settings.scores, settings.score_only
    part, found = targets.part(first, end), []
    for is_reverse, query in _by_strand(queries.part(first, end), strand).items():
        alignments = align_batch(query, part, scores, mode, backend, score_only)
        found.append(Results(query, part, np.full(end - first, is_reverse), alignments, score_only, first, first))
    return _checked(found, scores, mode)


def _by_strand(queries: Sequences, strand: Strand) -> dict[bool, Sequences]:
    """Return the queries to align, keyed by whether they are reverse complements."""
    strands = {} if strand is Strand.REVERSE else {False: queries}
    return strands if strand is Strand.FORWARD else strands | {True: queries.reverse_complements()}


def _checked(found: list[Results], scores: ScoringScheme, mode: Mode) -> Results:
    """Check the results of one strand, or the better results of two strands, and return them."""
    results = _better(*found) if len(found) == 2 else found[0]
    check(results, scores, mode)
    return results


def _better(forward: Results, reverse: Results) -> Results:
    """Return the result with the higher score for each pair, the forward result in a tie."""
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


def _choose(chosen: NDArray[np.bool_], first: PairAlignments, second: PairAlignments) -> PairAlignments:
    """Return for each pair its alignment in `second` if chosen, else its alignment in `first`."""
    counts = [np.diff(each.operation_ends, prepend=0) for each in (first, second)]
    kept = np.where(chosen, counts[1], counts[0])
    operations = np.empty(int(kept.sum()), np.uint32)
    is_chosen = np.repeat(chosen, kept)
    operations[is_chosen] = second.operations[np.repeat(chosen, counts[1])]
    operations[~is_chosen] = first.operations[np.repeat(~chosen, counts[0])]
    ends = {"operation_ends": np.cumsum(kept, dtype=np.int64), "operations": operations}
    others = vars(first).keys() - ends.keys()
    return PairAlignments(**{name: np.where(chosen, vars(second)[name], vars(first)[name]) for name in others}, **ends)


def _batches(queries: Sequences, targets: Sequences, devices: int) -> Iterator[tuple[int, int]]:
    """Yield ranges [first, end) of pairs within MAX_BATCH limits and a device's share of cells, or of a large pair."""
    letters, cells = queries.lengths + targets.lengths, queries.lengths * targets.lengths
    limits = ((letters, MAX_BATCH_LETTERS), (cells, min(MAX_BATCH_CELLS, -(-int(cells.sum()) // devices))))
    sums = [(np.concatenate([[0], np.cumsum(values)]), limit) for values, limit in limits]
    max_pairs = min(MAX_BATCH_PAIRS, -(-len(queries) // devices))
    first = 0
    while first < len(queries):
        ends = [int(sum.searchsorted(sum[first] + limit, "right")) - 1 for sum, limit in sums]
        end = max(first + 1, min(first + max_pairs, len(queries), *ends))
        yield first, end
        first = end


def check_same_count(queries: Sequences, targets: Sequences) -> None:
    """Raise DataError naming the first query or target without a partner."""
    if len(queries) != len(targets):
        longer, what = (queries, "queries") if len(queries) > len(targets) else (targets, "targets")
        index = min(len(queries), len(targets))
        alone = f"record {index + 1} ({decode_name(longer.names[index])}) of the {what} has no partner"
        raise DataError(f"{len(queries):,} queries and {len(targets):,} targets, expected equal numbers: {alone}")
