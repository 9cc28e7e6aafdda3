"""Align the hits of queries."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.database.parameters import ScanScoring
from readmap.database.scores import DeviceQuery, find_ends, interleave
from readmap.errors import InternalError
from readmap.pairwise.alignments import PairAlignments, join_alignments
from readmap.pairwise.batches import align_pairs
from readmap.pairwise.checker import check
from readmap.pairwise.device_sequences import sequences_from_codes
from readmap.pairwise.parameters import Mode, SubstitutionScores
from readmap.pairwise.results import Results
from readmap.reads.sequences import Sequences

#: Maximum letters of a batch of pairs.
BATCH_LETTERS = 1 << 25

#: Minimum cells of a query's hits for which the parts that contain the alignments are searched first.
MIN_CROP_CELLS = 1 << 24

#: Maximum ratio of all lane columns to filled ones when cropping, and cells of a pair above which the whole GPU aligns
#: it faster than a thread group.
MAX_LANE_RATIO, MAX_GROUP_CELLS = 4, 1 << 28

Codes = NDArray[np.uint8]


class AlignmentRequest(NamedTuple):
    """A query and the subjects of its hits, as codes, and their scores in the scan, int32 [subjects]."""

    query: Codes
    subjects: Sequence[Codes]
    scores: NDArray[np.int32]


class CroppedPair(NamedTuple):
    """Parts of a query and a subject, where they start in the sequences, and the score of their alignment."""

    query: Codes
    subject: Codes
    query_start: int
    subject_start: int
    score: int


def align_hits(
    requests: Iterable[AlignmentRequest], counts: Sequence[int], scoring: ScanScoring, backend: Backend
) -> list[PairAlignments]:
    """Return the alignments of each request; counts: subjects of each request. InternalError if a score differs."""
    scores = scoring.pairwise_scores()
    pairs = (pair for each in requests for pair in _pairs(each, scoring, backend))
    batches = [_align_batch(batch, scores, backend) for batch in _batches(pairs)]
    ends = np.cumsum([0, *counts])
    whole = join_alignments(batches)
    return [whole.part(first, end) for first, end in pairwise(ends.tolist())]


def _pairs(request: AlignmentRequest, scoring: ScanScoring, backend: Backend) -> list[CroppedPair]:
    """Return the query with each subject, cropped to the part that contains the alignment if they are large."""
    query, subjects, scores = request
    pairs = [CroppedPair(query, subject, 0, 0, score) for subject, score in zip(subjects, scores.tolist(), strict=True)]
    lengths = np.array([len(subject) for subject in subjects], np.int64)
    if len(query) * int(lengths.sum()) < MIN_CROP_CELLS:
        return pairs
    indices = _croppable(len(query), lengths, backend)
    found = find_regions(query, [subjects[i] for i in indices], scores[indices], scoring, backend)
    rows = zip(indices.tolist(), *(array.tolist() for array in vars(found).values()), strict=True)
    for i, start, end, first, last in rows:
        pairs[i] = CroppedPair(query[start:end], subjects[i][first:last], start, first, pairs[i].score)
    return pairs


def _croppable(rows: int, lengths: NDArray[np.int64], backend: Backend) -> NDArray[np.int64]:
    """Return the indices of subjects of these lengths for which cropping is faster; rows: length of the query."""
    lanes, order = backend.lanes_16bit, np.argsort(-lengths, kind="stable")
    groups = np.zeros((-(-len(lengths) // lanes), lanes), np.int64)
    groups.reshape(-1)[: len(lengths)] = lengths[order]
    # An empty lane takes as long as a filled lane.
    are_full = MAX_LANE_RATIO * groups.sum(axis=1) >= lanes * groups[:, 0]
    if backend.warp_width > 1:
        are_full &= rows * groups[:, 0] <= MAX_GROUP_CELLS
    return np.sort(order[np.repeat(are_full, lanes)[: len(lengths)]])


def _batches(pairs: Iterable[CroppedPair]) -> Iterator[list[CroppedPair]]:
    """Yield batches of consecutive pairs, up to BATCH_LETTERS each; at least one batch, which may be empty."""
    batch: list[CroppedPair] = []
    letters = 0
    for pair in pairs:
        more = len(pair.query) + len(pair.subject)
        if batch and letters + more > BATCH_LETTERS:
            yield batch
            batch, letters = [], 0
        batch.append(pair)
        letters += more
    yield batch


def _align_batch(pairs: Sequence[CroppedPair], scores: SubstitutionScores, backend: Backend) -> PairAlignments:
    """Align pairs, verify scores and alignments, and return the alignments with positions in the whole sequences."""
    names = [b"%d" % i for i in range(len(pairs))]
    queries = Sequences.of(names, [pair.query for pair in pairs])
    subjects = Sequences.of(names, [pair.subject for pair in pairs])
    codes, targets = (sequences_from_codes(side.letters, side.offsets, backend) for side in (queries, subjects))
    found = align_pairs(codes, targets, scores, Mode.LOCAL, backend).to_host(backend)
    expected = np.array([pair.score for pair in pairs], np.int32)
    wrong = np.flatnonzero(found.scores != expected)
    if len(wrong):
        raise InternalError(f"a hit has score {expected[wrong[0]]}, but its alignment {found.scores[wrong[0]]}")
    forward = np.zeros(len(pairs), np.bool_)
    check(Results(queries, subjects, forward, found, False, 0, 0), scores, Mode.LOCAL)
    starts = {"query": [pair.query_start for pair in pairs], "target": [pair.subject_start for pair in pairs]}
    names_of_sides = ((f"{side}_{end}", side) for side in starts for end in ("starts", "ends"))
    moved = {name: vars(found)[name] + np.array(starts[side], np.int64) for name, side in names_of_sides}
    return replace(found, **moved)


@dataclass(frozen=True)
class Regions:
    """Parts of the query and of each subject, int64 [subjects], half-open.

    Aligning these parts gives the alignment of the whole sequences: the parts end where the first best alignment ends,
    and start before the start of any best alignment, so that ties are broken in the same way.
    """

    query_starts: NDArray[np.int64]
    query_ends: NDArray[np.int64]
    subject_starts: NDArray[np.int64]
    subject_ends: NDArray[np.int64]


def find_regions(
    query: Codes, subjects: Sequence[Codes], scores: NDArray[np.int32], scoring: ScanScoring, backend: Backend
) -> Regions:
    """Return the parts of a query and its subjects that contain the alignments. scores: int32 [subjects], above 0."""
    lengths = np.array([len(subject) for subject in subjects], np.int64)
    order = np.argsort(-lengths, kind="stable")
    if not subjects:
        return Regions(lengths, lengths, lengths, lengths)
    rows, columns, _, _ = _best_ends(query, [subjects[i] for i in order], scores[order], scoring, backend)
    # In the reversed sequences, the starts of alignments are ends.
    backwards = [subjects[i][::-1] for i in order]
    _, _, last_rows, last_columns = _best_ends(query[::-1].copy(), backwards, scores[order], scoring, backend)
    found = (len(query) - 1 - last_rows, rows + 1, lengths[order] - 1 - last_columns, columns + 1)
    unsorted = np.empty((4, len(order)), np.int64)
    unsorted[:, order] = found
    return Regions(*unsorted)


def _best_ends(
    query: Codes, subjects: Sequence[Codes], scores: NDArray[np.int32], scoring: ScanScoring, backend: Backend
) -> tuple[NDArray[np.int64], ...]:
    """Return row and column of each first best end, then maximum row and column of ends; subjects: longest first."""
    lengths = np.array([len(subject) for subject in subjects], np.int64)
    starts = np.cumsum(lengths) - lengths
    columns = interleave(np.concatenate(subjects), starts, lengths, backend)
    return find_ends(DeviceQuery.of(query, scoring, backend), columns, scores, backend)
