"""Time several functions alternately, so that other load on the machine slows all of them."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.common import timed
from readmap.backend import Backend


def seconds_in_turn(works: dict[str, Callable[[], Any]], runs: int, backend: Backend) -> dict[str, float]:
    taken: list[dict[str, float]] = []
    for _ in range(runs):
        taken.append({})
        for name, work in works.items():
            with timed(taken[-1], name, backend):
                work()
    return {name: median(seconds[name] for seconds in taken) for name in works}


def kernels_of(work: Callable[[], Any], backend: Any) -> list[dict[str, Any]]:
    """Return a row for each kernel that a GPU runs in `work`: milliseconds by events before and after the kernel."""
    launched, run = dict[str, list[Any]](), backend.run

    def run_between_events(kernel: Any, *arguments: Any) -> None:
        start, end = (backend.xp.cuda.Event() for _ in range(2))
        start.record()
        run(kernel, *arguments)
        end.record()
        launched.setdefault(kernel.name, []).append((start, end))

    backend.run = run_between_events
    try:
        work()
        backend.synchronize()
    finally:
        del backend.run
    elapsed = backend.xp.cuda.get_elapsed_time
    return [
        {"kernel": name, "launches": len(events), "milliseconds": round(sum(elapsed(*each) for each in events), 4)}
        for name, events in launched.items()
    ]


def gcups(cells: int, seconds: float) -> float:
    """Return billions of matrix cells per second."""
    return float(f"{cells / seconds / 1e9:.4g}")
