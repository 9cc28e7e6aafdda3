"""Queries and a database -> the hits of each query, the best first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from readmap.database.database import Database
from readmap.database.device_pool import DevicePool
from readmap.database.hit_alignment import AlignmentRequest, align
from readmap.database.letters import codes_of
from readmap.database.parameters import HitFilter, ScanScoring
from readmap.database.results import ScanHits
from readmap.database.statistics import SearchSpace
from readmap.formats.alphabets import Alphabet
from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.parameters import Mode
from readmap.reads.sequences import COMPLEMENTS, Sequences
from readmap.strand import Strand

#: Scores that are kept at a time: queries go in blocks of so many.
BLOCK_SCORES = 1 << 26

#: Queries of the first block where several devices have to be timed.
TIMED_QUERIES = 4

#: Lengths of subjects for which the lowest score of a hit is looked up.
SAMPLED_LENGTHS = 64

Codes = NDArray[np.uint8]


class QueryResult(NamedTuple):
    """What was found with a query.

    hits: those that are reported.
    scores: int32 [subjects], of every sequence of the database in its file's order, the better one of both strands.
    threshold: the lowest score of a hit with a subject of median length; None where none is known.
    """

    hits: ScanHits
    scores: NDArray[np.int32]
    threshold: int | None


@dataclass(frozen=True)
class _SelectedHits:
    """The hits of a query before they are aligned: ranks in the database, int64, and the rest as in Hits."""

    ranks: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    scores: NDArray[np.int32]
    bit_scores: NDArray[np.float64]
    evalues: NDArray[np.float64]
    threshold: int | None


@dataclass(frozen=True)
class Scan:
    """A scan, as often as it is asked for."""

    database: Database
    scoring: ScanScoring
    hit_filter: HitFilter
    pool: DevicePool

    @property
    def strands(self) -> list[bool]:
        """Whether each one that is looked at is the reverse one."""
        if self.database.molecule is Alphabet.PROTEINS:
            return [False]
        return {Strand.FORWARD: [False], Strand.REVERSE: [True], Strand.BOTH: [False, True]}[self.hit_filter.strand]

    def cells(self, queries: Sequences) -> int:
        """Cells of all matrices together."""
        return int(queries.lengths.sum()) * self.database.letters * len(self.strands)

    def __call__(self, queries: Sequences, report: Callable[[int], None] = lambda cells: None) -> Iterator[QueryResult]:
        """What is found with each query, in order; report: hears of cells that are done.

        Raises UsageError where E-values are unknown or scores too high.
        """
        self.hit_filter.max_evalue(self.scoring)  # whether there are any
        longest = np.full(len(queries), self.database.longest)
        self.scoring.pairwise_scores().check_score_range(queries.lengths, longest, Mode.LOCAL)
        for first, end in pairwise(self._blocks(len(queries))):
            codes = [codes_of(letters) for letters in queries.part(first, end)]
            yield from self._scan_block(first, codes, report)

    def _blocks(self, queries: int) -> list[int]:
        """Where blocks begin, and the end of the last one."""
        size = max(BLOCK_SCORES // max(len(self.database) * len(self.strands), 1), 1)
        first = min(TIMED_QUERIES, size) if len(self.pool.team) > 1 else 0
        return [*sorted({0, *range(first, queries, size)} - {queries}), queries] if queries else []

    def _scan_block(self, first: int, queries: Sequence[Codes], report: Callable[[int], None]) -> Iterator[QueryResult]:
        scores = np.stack([self._scores(queries, reverse, report) for reverse in self.strands], axis=1)
        chosen = [self._select_hits(codes, rows) for codes, rows in zip(queries, scores, strict=True)]
        alignments = self._align(queries, chosen)
        for number, (made, found) in enumerate(zip(chosen, alignments, strict=True)):
            subjects = self.database.order[made.ranks]
            hits = ScanHits(first + number, subjects, made.reverse, made.scores, made.bit_scores, made.evalues, found)
            by_number = np.empty(len(self.database), np.int32)
            by_number[self.database.order] = scores[number].max(axis=0)
            yield QueryResult(hits, by_number, made.threshold)

    def _scores(self, queries: Sequence[Codes], reverse: bool, report: Callable[[int], None]) -> NDArray[np.int32]:
        """int32 [queries, subjects] of a strand, the reverse one by the queries' reverse complements."""
        if not reverse:
            return self.pool.scores(queries, self.scoring, report)
        return self.pool.scores([_reverse_complement(codes) for codes in queries], self.scoring.complemented(), report)

    def _select_hits(self, query: Codes, scores: NDArray[np.int32]) -> _SelectedHits:
        """scores: int32 [strands, subjects]."""
        statistics, highest = self.scoring.statistics, self.hit_filter.max_evalue(self.scoring)
        lengths, least, threshold = self.database.lengths, self.hit_filter.min_score, None
        space = None
        if statistics is not None:
            letters = self.hit_filter.database_letters or self.database.letters
            sequences = self.hit_filter.database_sequences or int(np.count_nonzero(lengths))
            space = SearchSpace(statistics, len(query), letters, sequences)
        if space and highest is not None and len(query) and len(lengths) and lengths[0]:
            sampled = np.unique(np.geomspace(max(lengths[-1], 1), lengths[0], SAMPLED_LENGTHS).astype(np.int64))
            (usual,) = space.min_scores(highest, np.maximum(lengths[len(lengths) // 2 :][:1], 1))
            threshold = max(int(usual), least)
            # An E-value is that of an area, which rises with the length, divided by the length: up to the next one that
            # is sampled it falls by less than these lengths' ratio.
            margins = np.append(sampled[1:], sampled[-1]) / sampled
            least = max(int(space.min_scores(highest * margins, sampled).min()), least)
        # Indices of two dimensions take NumPy ten times as long.
        strands, ranks = np.divmod(np.flatnonzero(scores.reshape(-1) >= least), len(self.database) or 1)
        found = scores[strands, ranks]
        evalues = np.full(len(ranks), np.nan)
        if space:
            evalues = space.evalues(found.astype(np.int64), lengths[ranks])
        if highest is not None:
            kept = evalues <= highest
            strands, ranks, found, evalues = strands[kept], ranks[kept], found[kept], evalues[kept]
        order = np.lexsort((strands, self.database.order[ranks], -found.astype(np.int64)))[: self.hit_filter.max_hits]
        strands, ranks, found, evalues = strands[order], ranks[order], found[order], evalues[order]
        reverse = np.array(self.strands, np.bool_)[strands]
        bits = statistics.bit_scores(found) if statistics else np.full(len(found), np.nan)
        return _SelectedHits(ranks, reverse, found, bits, evalues, threshold)

    def _align(self, queries: Sequence[Codes], chosen: Sequence[_SelectedHits]) -> list[PairAlignments]:
        """The alignments of each query's hits."""
        counts, team = [len(made.ranks) for made in chosen], self.pool.team
        return team.submit(0, lambda: align(self._wanted(queries, chosen), counts, self.scoring, team.first)).result()

    def _wanted(self, queries: Sequence[Codes], chosen: Sequence[_SelectedHits]) -> Iterator[AlignmentRequest]:
        """One query at a time: reverse complements of long subjects take memory."""
        for query, made in zip(queries, chosen, strict=True):
            places = zip(made.ranks.tolist(), made.reverse.tolist(), strict=True)
            yield AlignmentRequest(query, [self._subject(rank, reverse) for rank, reverse in places], made.scores)

    def _subject(self, rank: int, reverse: bool) -> Codes:
        start = int(self.database.starts[rank])
        codes = self.database.codes[start : start + int(self.database.lengths[rank])]
        return _reverse_complement(codes) if reverse else codes


def _reverse_complement(codes: Codes) -> Codes:
    """The reverse complement of nucleotides."""
    return codes_of(COMPLEMENTS[codes[::-1] + np.uint8(ord("A"))])
