"""scripts/benchmark compare-pairs: align many short pairs, from host arrays to host arrays, and time parasail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Options, Row, report_of_backend
from benchmarks.compare import peer
from benchmarks.compare.bars import hold_batches
from benchmarks.compare.checks import align_batch, check_batches, texts
from benchmarks.compare.inputs import short_pairs
from benchmarks.compare.times import gcups, kernels_of, seconds_in_turn
from readmap.backend import Backend, open_backend
from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.parameters import Mode
from readmap.reads.sequences import Sequences

COUNTS = {"cpu": 50_000, "cuda": 1_000_000}
PEER_PAIRS = 10_000  # maximum number of pairs for parasail

Sides = tuple[Sequences, Sequences]
#: Host buffers for the results of a GPU.
Buffers = list[NDArray[np.uint8]]


def benchmark_batches(options: Options) -> tuple[Row, Row]:
    """Time each mode, scores alone and with CIGARs; on a GPU also the kernels."""
    backend = open_backend(options.device, options.threads)
    sides = short_pairs(options.pairs or COUNTS[options.device])
    if not peer.is_installed():
        print("parasail is not installed, so readmap runs alone")
    checked = check_batches(options, backend, *sides)
    if backend.name != "cpu":
        sides = _pin(sides[0], backend), _pin(sides[1], backend)
    backends = [backend]
    if backend.name == "cpu" and backend.threads > 1:
        backends.insert(0, open_backend("cpu", 1))
    rows, kernels = [], []
    for one in backends:
        for mode in Mode:
            for what in ("score", "CIGAR"):
                kind = {"mode": str(mode), "what": what}
                row, of_kernels = time_batch(sides, mode, what, one, options.runs)
                rows.append(kind | row)
                kernels += [kind | each for each in of_kernels]
    report = {**checked, "batches": rows, "kernels": kernels}
    return report | {"bars": hold_batches(report, usual=options.pairs is None)}, report_of_backend(backend)


def time_batch(sides: Sides, mode: Mode, what: str, backend: Backend, runs: int) -> tuple[Row, list[Row]]:
    """Return a row of times, and rows of the GPU's kernels."""
    pairs, cells = len(sides[0]), int(sides[0].lengths @ sides[1].lengths)

    def align() -> PairAlignments:
        return align_batch(*sides, mode, backend, score_only=what == "score")

    buffers = _buffers(align(), backend)
    works: dict[str, Callable[[], Any]] = {"readmap": lambda: _fetch(align(), buffers)}
    given = min(pairs, PEER_PAIRS)
    if backend.name == "cpu" and backend.threads == 1 and peer.is_installed():
        call = peer.aligner(mode, traced=what == "CIGAR")
        queries, targets = (texts(side.part(0, given)) for side in sides)
        works["parasail"] = lambda: [call(*pair) for pair in zip(queries, targets, strict=True)]
    seconds = seconds_in_turn(works, runs, backend)
    row = {"device": backend.name, "threads": backend.threads, "pairs": pairs, "seconds": round(seconds["readmap"], 6)}
    row |= {"pairs_a_second": round(pairs / seconds["readmap"]), "gcups": gcups(cells, seconds["readmap"])}
    if "parasail" in seconds:
        row |= {"parasail": peer.name_of(mode, traced=what == "CIGAR"), "parasail_pairs": given}
        row |= {"parasail_pairs_a_second": round(given / seconds["parasail"])}
    return row, [] if backend.name == "cpu" else kernels_of(align, backend)


def _pin(side: Sequences, backend: Backend) -> Sequences:
    """Return the sequences in pinned memory, from which copies to the device are fastest."""
    return replace(side, letters=_pinned(side.letters, backend), offsets=_pinned(side.offsets, backend))


def _pinned(array: NDArray[Any], backend: Backend) -> NDArray[Any]:
    held = backend.host_buffer(array.nbytes).view(array.dtype)
    held[:] = array
    return held


def _buffers(found: PairAlignments, backend: Backend) -> Buffers:
    """Return pinned buffers for the result arrays of a GPU; none for the CPU, whose arrays are NumPy's."""
    if backend.name == "cpu":
        return []
    return [backend.host_buffer(max(array.nbytes, 1)) for array in vars(found).values()]


def _fetch(found: PairAlignments, buffers: Buffers) -> None:
    for buffer, array in zip(buffers, vars(found).values(), strict=False):
        if array.nbytes:
            array.get(out=buffer[: array.nbytes].view(array.dtype))
