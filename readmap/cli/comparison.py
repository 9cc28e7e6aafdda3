"""What readmap compare is to do, and what it tells of it."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from readmap.backend import Backend
from readmap.cli.report import counted, printable, share
from readmap.pairwise.comparison import cells_of, compare_all, compare_pairs
from readmap.pairwise.parameters import Mode, Settings
from readmap.pairwise.results import Results
from readmap.reads.sequences import Sequences
from readmap.strand import Strand


@dataclass
class Summary:
    """What has been compared: pairs, those of them that have an alignment, and the seconds that it took."""

    pairs: int = 0
    aligned: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Work:
    """What is to be compared, and how.

    paths: of both files. settings: those of long sequences; of pairs the scores and score_only count.
    """

    paths: tuple[str, str]
    queries: Sequences
    targets: Sequences
    in_pairs: bool
    mode: Mode
    strand: Strand
    settings: Settings
    backend: Backend
    summary: Summary = field(default_factory=Summary)

    @property
    def cells(self) -> int:
        """Of all matrices."""
        return cells_of(self.queries, self.targets, self.strand, self.in_pairs)

    def results(self, progress: Callable[[int, int], None]) -> Iterator[Results]:
        """Those of all pairs, which the summary counts."""
        settings, strand = self.settings, self.strand
        if self.in_pairs:
            found = compare_pairs(self.queries, self.targets, settings, self.mode, strand, self.backend, progress)
        else:
            found = compare_all(self.queries, self.targets, settings, strand, self.backend, progress)
        while True:
            began = time.perf_counter()
            results = next(found, None)
            self.summary.seconds += time.perf_counter() - began
            if results is None:
                return
            self.summary.pairs += len(results.queries)
            self.summary.aligned += int((results.places[3] >= 0).sum())
            yield results

    def line(self) -> str:
        """What was done, in words."""
        summary, backend = self.summary, self.backend
        threads = f" with {backend.threads} threads" if backend.name == "cpu" and backend.threads > 1 else ""
        return (
            f"{counted(summary.pairs, 'pair')}, {summary.aligned:,} aligned: {self.cells:,} cells in "
            f"{summary.seconds:.2f} s, {gcups(self.cells, summary.seconds):,.2f} GCUPS on {backend.name}{threads}"
        )

    def record(self) -> dict[str, Any]:
        """The same for programs."""
        settings, summary = self.settings, self.summary
        scores = asdict(settings.scores)
        scores["gap_first"] = scores.pop("gap_open") + scores["gap_extend"]
        parts = zip(("query", "target"), self.paths, (self.queries, self.targets), strict=True)
        return {
            **{name: _file(path, sequences) for name, path, sequences in parts},
            "device": self.backend.name,
            "threads": self.backend.threads,
            "in_pairs": self.in_pairs,
            "mode": str(self.mode),
            "strand": str(self.strand),
            "score_only": settings.score_only,
            "scores": scores,
            "pruning": settings.pruning,
            "memory_bytes": settings.memory,
            "counts": {"pairs": summary.pairs, "aligned": summary.aligned, "cells": self.cells},
            "gcups": round(gcups(self.cells, summary.seconds), 4),
        }


def progress_line(done: int, total: int, seconds: float) -> str:
    """How much is done, how fast, and what is left."""
    left = datetime.timedelta(seconds=round(seconds * (total - done) / max(done, 1)))
    return f"{share(done, total)} of {total:.3g} cells, {gcups(done, seconds):,.1f} GCUPS, {left} left"


def gcups(cells: int, seconds: float) -> float:
    """Cells a second, in thousand millions."""
    return cells / max(seconds, 1e-9) / 1e9


def _file(path: str, sequences: Sequences) -> dict[str, Any]:
    return {"source": printable(path), "sequences": len(sequences), "letters": len(sequences.letters)}
