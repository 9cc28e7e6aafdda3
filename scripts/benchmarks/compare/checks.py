"""Checks before timing; each exits with a message if two results differ."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from benchmarks.common import Options, Row, backends_to_check
from benchmarks.compare import peer
from benchmarks.compare.inputs import HERPESVIRUSES_END, Pair, similar_pair
from readmap.backend import Backend
from readmap.backend.team import Team
from readmap.errors import InternalError
from readmap.pairwise import checker, comparison
from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.batches import align_pairs
from readmap.pairwise.device_sequences import sequences_from_letters
from readmap.pairwise.parameters import CompareSettings, MatchScores, Mode
from readmap.pairwise.results import Results
from readmap.reads.sequences import Sequences

MIDDLE = 30_000  # length of the long pairs to align
RATES = (0.02, 0.1, 0.3)  # rates of differences
LITTLE = 1 << 20  # bytes for special rows and columns, so few that tiles are computed again
FEW, FEW_OF_PEER = 20_000, 3_000  # pairs of a batch, and pairs for parasail

SCORE = CompareSettings(score_only=True, pruning=False)


def check_long(options: Options, backend: Backend, viruses: Pair | None) -> Row:
    """Check the herpesviruses' score against the paper, and alignments of similar pairs by all backends."""
    checked: Row = {"checked": True, "herpesviruses": None}
    if viruses:
        score, *end = end_of(align_long(viruses, SCORE, backend))
        if (score, *end) != HERPESVIRUSES_END:
            _fail(f"the herpesviruses score {score} at {end}, but {HERPESVIRUSES_END} in the paper")
        checked["herpesviruses"] = {"score": score, "query_end": end[0], "target_end": end[1]}
    ways = {}
    for name, one in backends_to_check(options, backend).items():
        ways[name] = one, CompareSettings()
        ways[f"{name}, unpruned"] = one, CompareSettings(pruning=False)
        ways[f"{name}, little memory"] = one, CompareSettings(memory=LITTLE)
    for pair in (similar_pair(bases=MIDDLE, rate=rate) for rate in RATES):
        found = {name: align_long(pair, settings, one) for name, (one, settings) in ways.items()}
        _expect_same(found, pair.name)
        sides = [Sequences([pair.name.encode()], side, np.array([0, len(side)])) for side in pair[1:]]
        first = next(iter(found.values()))
        _rescore(*sides, first, Mode.LOCAL)
        if peer.is_installed():
            _expect_scores_of_peer(*sides, first, Mode.LOCAL, bits=32)
    return checked | {
        "same": [*ways],
        "checked_pairs": len(RATES),
        "checked_bases": MIDDLE,
        "same_as_parasail": peer.is_installed(),
    }


def align_long(pair: Pair, settings: CompareSettings, backend: Backend) -> PairAlignments:
    return comparison.align_long_pair(pair.query, pair.target, settings, Team.of(backend), lambda done, total: None)


def end_of(found: PairAlignments) -> tuple[int, int, int]:
    """Return the score, and its end in the query and in the target."""
    return int(found.scores[0]), int(found.query_ends[0]), int(found.target_ends[0])


def check_batches(options: Options, backend: Backend, queries: Sequences, targets: Sequences) -> Row:
    """Check the first pairs in every mode: all backends agree, scores are correct and equal parasail's."""
    few = min(FEW, len(queries))
    sides, backends = (queries.part(0, few), targets.part(0, few)), backends_to_check(options, backend)
    few_of_peer = min(FEW_OF_PEER, few) if peer.is_installed() else 0
    for mode in Mode:
        found = {name: align_batch(*sides, mode, one).to_host(one) for name, one in backends.items()}
        _expect_same(found, f"{mode} alignments of pairs")
        first = next(iter(found.values()))
        scores = {name: align_batch(*sides, mode, one, score_only=True).to_host(one) for name, one in backends.items()}
        for name, one in scores.items():
            if not np.array_equal(one.scores, first.scores) or not np.array_equal(one.target_ends, first.target_ends):
                _fail(f"{mode} scores without alignments, by {name}, differ from the scores of the alignments")
        _rescore(*sides, first, mode)
        if few_of_peer:
            _expect_scores_of_peer(*(side.part(0, few_of_peer) for side in sides), first, mode)
    return {"checked": True, "same": [*backends], "checked_pairs": few, "same_as_parasail": few_of_peer}


def align_batch(
    queries: Sequences, targets: Sequences, mode: Mode, backend: Backend, score_only: bool = False
) -> PairAlignments:
    """Align pairs on the device of the backend."""
    sides = (sequences_from_letters(side.letters, side.offsets, backend) for side in (queries, targets))
    return align_pairs(*sides, MatchScores(), mode, backend, score_only)


def texts(side: Sequences) -> list[str]:
    return [letters.tobytes().decode() for letters in side]


def _expect_same(found: Mapping[str, PairAlignments], what: str) -> None:
    """Exit if a field of two results differs."""
    first, expected = next(iter(found.items()))
    for name, one in found.items():
        if not all(np.array_equal(getattr(one, field), values) for field, values in vars(expected).items()):
            _fail(f"{what}: {name} and {first} differ")


def _rescore(queries: Sequences, targets: Sequences, found: PairAlignments, mode: Mode) -> None:
    try:
        results = Results(queries, targets, np.zeros(len(queries), np.bool_), found, False, 0, 0)
        checker.check(results, MatchScores(), mode)
    except InternalError as error:
        _fail(str(error))


def _expect_scores_of_peer(
    queries: Sequences, targets: Sequences, found: PairAlignments, mode: Mode, bits: int = 16
) -> None:
    align = peer.aligner(mode, bits=bits)
    expected = [align(*pair).score for pair in zip(texts(queries), texts(targets), strict=True)]
    if found.scores[: len(expected)].tolist() != expected:
        _fail(f"{mode} scores are not parasail's")


def _fail(what: str) -> NoReturn:
    sys.exit(f"benchmark: {what}, so nothing is timed")
