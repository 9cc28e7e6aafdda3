"""Search a database with queries: scores, selection of hits, alignments."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from readmap.database.database import Database
from readmap.database.device_pool import DevicePool
from readmap.database.hit_alignment import AlignmentRequest, align_hits
from readmap.database.letters import codes_of
from readmap.database.parameters import HitFilter, ScanScoring
from readmap.database.results import ScanHits
from readmap.database.statistics import SearchSpace
from readmap.formats.alphabets import Alphabet
from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.parameters import Mode
from readmap.reads.sequences import COMPLEMENTS, Sequences
from readmap.strand import Strand

#: Scores kept at a time, which limits the queries of a block.
BLOCK_SCORES = 1 << 26

#: Queries of the first block if several devices have to be timed.
TIMED_QUERIES = 4

#: Subject lengths for which the minimum score of a hit is computed.
SAMPLED_LENGTHS = 64

Codes = NDArray[np.uint8]


class QueryResult(NamedTuple):
    """The result of a scan with one query.

    hits: reported hits. scores: int32 [subjects], of every sequence of the database in the order of its file, the
    maximum of both strands. threshold: minimum score of a hit with a subject of median length; None if unknown.
    """

    hits: ScanHits
    scores: NDArray[np.int32]
    threshold: int | None


@dataclass(frozen=True)
class _SelectedHits:
    """Hits of a query before their alignment: sorted positions in the database, int64, and fields as in ScanHits."""

    ranks: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    scores: NDArray[np.int32]
    bit_scores: NDArray[np.float64]
    evalues: NDArray[np.float64]
    threshold: int | None


@dataclass(frozen=True)
class Scan:
    """A database, a scoring and a hit filter, with which any number of queries can be scanned."""

    database: Database
    scoring: ScanScoring
    hit_filter: HitFilter
    pool: DevicePool

    @property
    def strands(self) -> list[bool]:
        """For each strand to search, whether it is the reverse strand."""
        if self.database.molecule is Alphabet.PROTEINS:
            return [False]
        return {Strand.FORWARD: [False], Strand.REVERSE: [True], Strand.BOTH: [False, True]}[self.hit_filter.strand]

    def cells(self, queries: Sequences) -> int:
        """Return the number of matrix cells of a scan."""
        return int(queries.lengths.sum()) * self.database.letters * len(self.strands)

    def __call__(self, queries: Sequences, report: Callable[[int], None] = lambda cells: None) -> Iterator[QueryResult]:
        """Yield the result of each query, in order; UsageError if E-values are unknown or scores exceed 32 bits."""
        self.hit_filter.max_evalue(self.scoring)  # raises if E-values are unknown
        longest = np.full(len(queries), self.database.longest)
        self.scoring.pairwise_scores().check_score_range(queries.lengths, longest, Mode.LOCAL)
        for first, end in pairwise(self._blocks(len(queries))):
            codes = [codes_of(letters) for letters in queries.part(first, end)]
            yield from self._scan_block(first, codes, report)

    def _blocks(self, queries: int) -> list[int]:
        """Return the starts of blocks of up to BLOCK_SCORES scores, and the end of the last. queries: their count."""
        size = max(BLOCK_SCORES // max(len(self.database) * len(self.strands), 1), 1)
        first = min(TIMED_QUERIES, size) if len(self.pool.team) > 1 else 0
        return [*sorted({0, *range(first, queries, size)} - {queries}), queries] if queries else []

    def _scan_block(self, first: int, queries: Sequence[Codes], report: Callable[[int], None]) -> Iterator[QueryResult]:
        """Yield the results of a block of queries, given as codes; first: index of the block's first query."""
        scores = np.stack([self._scores(queries, reverse, report) for reverse in self.strands], axis=1)
        chosen = [self._select_hits(codes, rows) for codes, rows in zip(queries, scores, strict=True)]
        alignments = self._align(queries, chosen)
        for i, (selected, found) in enumerate(zip(chosen, alignments, strict=True)):
            own = {name: value for name, value in vars(selected).items() if name not in ("ranks", "threshold")}
            hits = ScanHits(first + i, self.database.order[selected.ranks], **own, alignments=found)
            in_file_order = np.empty(len(self.database), np.int32)
            in_file_order[self.database.order] = scores[i].max(axis=0)
            yield QueryResult(hits, in_file_order, selected.threshold)

    def _scores(self, queries: Sequence[Codes], reverse: bool, report: Callable[[int], None]) -> NDArray[np.int32]:
        """Return int32 [queries, subjects] of a strand; the reverse strand uses reverse complements of the queries."""
        if not reverse:
            return self.pool.scores(queries, self.scoring, report)
        return self.pool.scores([_reverse_complement(codes) for codes in queries], self.scoring.complemented(), report)

    def _select_hits(self, query: Codes, scores: NDArray[np.int32]) -> _SelectedHits:
        """Return the hits of a query that pass the filter, best first; scores: int32 [strands, subjects]."""
        statistics, max_evalue = self.scoring.statistics, self.hit_filter.max_evalue(self.scoring)
        lengths, min_score, threshold = self.database.lengths, self.hit_filter.min_score, None
        space = None
        if statistics is not None:
            letters = self.hit_filter.database_letters or self.database.letters
            sequences = self.hit_filter.database_sequences or int(np.count_nonzero(lengths))
            space = SearchSpace(statistics, len(query), letters, sequences)
        if space and max_evalue is not None and len(query) and len(lengths) and lengths[0]:
            sampled = np.unique(np.geomspace(max(lengths[-1], 1), lengths[0], SAMPLED_LENGTHS).astype(np.int64))
            (median,) = space.min_scores(max_evalue, np.maximum(lengths[len(lengths) // 2 :][:1], 1))
            threshold = max(int(median), min_score)
            # The E-value is an area, which grows with the length, divided by the length. Between two sampled lengths
            # it falls by less than their ratio.
            margins = np.append(sampled[1:], sampled[-1]) / sampled
            min_score = max(int(space.min_scores(max_evalue * margins, sampled).min()), min_score)
        # Two-dimensional indexing would take ten times as long.
        strands, ranks = np.divmod(np.flatnonzero(scores.reshape(-1) >= min_score), len(self.database) or 1)
        found = scores[strands, ranks]
        evalues = np.full(len(ranks), np.nan)
        if space:
            evalues = space.evalues(found.astype(np.int64), lengths[ranks])
        if max_evalue is not None:
            kept = evalues <= max_evalue
            strands, ranks, found, evalues = strands[kept], ranks[kept], found[kept], evalues[kept]
        order = np.lexsort((strands, self.database.order[ranks], -found.astype(np.int64)))[: self.hit_filter.max_hits]
        strands, ranks, found, evalues = strands[order], ranks[order], found[order], evalues[order]
        reverse = np.array(self.strands, np.bool_)[strands]
        bits = statistics.bit_scores(found) if statistics else np.full(len(found), np.nan)
        return _SelectedHits(ranks, reverse, found, bits, evalues, threshold)

    def _align(self, queries: Sequence[Codes], chosen: Sequence[_SelectedHits]) -> list[PairAlignments]:
        counts, team = [len(selected.ranks) for selected in chosen], self.pool.team
        requests = self._requests(queries, chosen)
        return team.submit(0, lambda: align_hits(requests, counts, self.scoring, team.first)).result()

    def _requests(self, queries: Sequence[Codes], chosen: Sequence[_SelectedHits]) -> Iterator[AlignmentRequest]:
        """Yield a request to align each query's hits, one at a time, because reverse complements take memory."""
        for query, selected in zip(queries, chosen, strict=True):
            strands = zip(selected.ranks.tolist(), selected.reverse.tolist(), strict=True)
            subjects = [self._subject(rank, reverse) for rank, reverse in strands]
            yield AlignmentRequest(query, subjects, selected.scores)

    def _subject(self, rank: int, reverse: bool) -> Codes:
        start = int(self.database.starts[rank])
        codes = self.database.codes[start : start + int(self.database.lengths[rank])]
        return _reverse_complement(codes) if reverse else codes


def _reverse_complement(codes: Codes) -> Codes:
    return codes_of(COMPLEMENTS[codes[::-1] + np.uint8(ord("A"))])
