"""scripts/benchmark compare: time scores of two long sequences and parasail's, then alignments of similar sequences."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from benchmarks.common import Options, Row, report_of_backend
from benchmarks.compare import peer
from benchmarks.compare.bars import hold_long_pairs
from benchmarks.compare.checks import SCORE, align_long, check_long, end_of
from benchmarks.compare.inputs import HERPESVIRUSES, PAIRS, Pair, herpesviruses, random_pair, similar_pair
from benchmarks.compare.times import gcups, seconds_in_turn
from readmap.backend import Backend, open_backend
from readmap.pairwise.parameters import CompareSettings, Mode

# lengths of the random sequences: on the GPU the paper's lengths, and one more
SIZES = {
    "cpu": (16_000, 32_000, 64_000),
    "cuda": (128_000, 256_000, 512_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000),
}
SIMILAR, RATE = {"cpu": 100_000, "cuda": 4_000_000}, 0.01
PEER_CELLS = 1 << 36  # largest matrix for parasail

KINDS = {"score, unpruned": SCORE, "score": CompareSettings(score_only=True), "alignment": CompareSettings()}


def benchmark_compare(options: Options) -> tuple[Row, Row]:
    """Return seconds and GCUPS of pairs of sequences; score and alignment of similar sequences."""
    if options.figures and not find_spec("matplotlib"):
        sys.exit("benchmark: --figures needs matplotlib: pip install '.[benchmark]'")
    backend, viruses = open_backend(options.device, options.threads), herpesviruses()
    if not viruses:
        print(f"{' and '.join(HERPESVIRUSES)} are not in {PAIRS}, so only random sequences are compared")
    if not peer.is_installed():
        print("parasail is not installed, so readmap runs alone")
    checked = check_long(options, backend, viruses)
    rows = []
    for bases in options.bases or SIZES[options.device]:
        rows += time_pair(random_pair(bases), backend, options)
    if viruses:
        rows += time_pair(viruses, backend, options)
    similar = time_similar(similar_pair(options.similar or SIMILAR[options.device], RATE), backend, options.runs)
    report = {**checked, "long_pairs": sorted(rows, key=lambda row: row["cells"]), "similar": similar}
    usual = options.bases is None and options.similar is None
    return report | {"bars": hold_long_pairs(report, usual)}, report_of_backend(backend)


def time_pair(pair: Pair, backend: Backend, options: Options) -> list[Row]:
    """Time scores alone: a row for one thread and parasail, and a row for all threads; on a GPU one row."""
    backends = [backend]
    if backend.name == "cpu" and backend.threads > 1:
        backends.insert(0, open_backend("cpu", 1))
    rows = []
    for one in backends:
        works, found = _works(pair, one)
        seconds = seconds_in_turn(works, options.runs, one)
        score, query_end, target_end = found["readmap"]
        if found.get("parasail", score) != score:
            sys.exit(f"benchmark: {pair.name} sequences score {score}, by parasail {found['parasail']}")
        row = _row(pair, one) | {"score": score}
        row |= {"query_end": query_end, "target_end": target_end}
        row |= {"seconds": round(seconds["readmap"], 5), "gcups": gcups(pair.cells, seconds["readmap"])}
        if "parasail" in works:
            row |= {"parasail_seconds": round(seconds["parasail"], 5)}
            row |= {"parasail_gcups": gcups(pair.cells, seconds["parasail"])}
        rows.append(row)
    return rows


def _works(pair: Pair, backend: Backend) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
    """Return the functions to time, and the dict that they fill with results."""
    found: dict[str, Any] = {}

    def ours() -> None:
        found["readmap"] = end_of(align_long(pair, SCORE, backend))

    works: dict[str, Callable[[], Any]] = {"readmap": ours}
    if backend.name == "cpu" and backend.threads == 1 and peer.is_installed() and pair.cells <= PEER_CELLS:
        align = peer.aligner(Mode.LOCAL)
        query, target = (side.tobytes().decode() for side in pair[1:])

        def theirs() -> None:
            found["parasail"] = align(query, target).score

        works["parasail"] = theirs
    return works, found


def time_similar(pair: Pair, backend: Backend, runs: int) -> list[Row]:
    """Return a row for each of the score without pruning, the score, and the alignment."""
    ends = {}

    def work(name: str, settings: CompareSettings) -> Callable[[], Any]:
        def align() -> None:
            ends[name] = end_of(align_long(pair, settings, backend))

        return align

    seconds = seconds_in_turn({name: work(name, settings) for name, settings in KINDS.items()}, runs, backend)
    return [
        _row(pair, backend)
        | {"what": name, "score": ends[name][0], "seconds": round(taken, 5), "gcups": gcups(pair.cells, taken)}
        | {"times_score": round(taken / seconds["score"], 3)}
        for name, taken in seconds.items()
    ]


def _row(pair: Pair, backend: Backend) -> Row:
    """Return the columns that describe the pair and the device."""
    bases = {"query_bases": len(pair.query), "target_bases": len(pair.target), "cells": pair.cells}
    return {"pair": pair.name, **bases, "device": backend.name, "threads": backend.threads}
