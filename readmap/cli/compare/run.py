"""The comparison of two files of sequences, and its report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from readmap.backend.team import Team
from readmap.cli.common.alignments import Timer, cells_line, file_record, gcups
from readmap.cli.compare.options import CompareOptions
from readmap.formats.wording import pluralize
from readmap.pairwise.comparison import compare_all, compare_pairs, count_cells
from readmap.pairwise.parameters import Mode
from readmap.pairwise.results import Results
from readmap.reads.sequences import Sequences
from readmap.run.devices import describe_devices
from readmap.strand import Strand


class ComparisonRun:
    """A comparison of the sequences of two files; `results` counts what it gives. timer: of what that takes."""

    def __init__(self, options: CompareOptions, queries: Sequences, targets: Sequences, team: Team) -> None:
        self.queries, self.targets = queries, targets
        self._options, self._team = options, team
        self._settings, self._strand = options.settings(), Strand(options.alignment.strand)
        self._mode, self._in_pairs = Mode(options.pairs.mode), options.pairs.in_pairs
        self._cells = count_cells(queries, targets, self._strand, self._in_pairs)
        self._pairs, self._aligned, self.timer = 0, 0, Timer()

    def results(self, progress: Callable[[int, int], None]) -> Iterator[Results]:
        """The results of all pairs; progress: takes the cells that are done, and all of them."""
        queries, targets, settings = self.queries, self.targets, self._settings
        if self._in_pairs:
            found = compare_pairs(queries, targets, settings, self._mode, self._strand, self._team, progress)
        else:
            found = compare_all(queries, targets, settings, self._strand, self._team, progress)
        for results in self.timer.timed(found):
            self._pairs += len(results.queries)
            self._aligned += int((results.ranges[3] >= 0).sum())
            yield results

    def line(self) -> str:
        """The summary in words."""
        devices = describe_devices(self._team.backends)
        cells = cells_line(self._cells, self.timer.seconds, devices)
        return f"{pluralize(self._pairs, 'pair')}, {self._aligned:,} aligned: {cells}"

    def record(self) -> dict[str, Any]:
        """The summary for programs."""
        settings = self._settings
        scores = asdict(self._options.alignment.scores())
        scores["gap_first"] = scores.pop("gap_open") + scores["gap_extend"]
        return {
            "query": file_record(self._options.query, len(self.queries), len(self.queries.letters)),
            "target": file_record(self._options.target, len(self.targets), len(self.targets.letters)),
            "device": self._team.first.name,
            "devices": [backend.name for backend in self._team.backends],
            "threads": self._team.first.threads,
            "in_pairs": self._in_pairs,
            "mode": str(self._mode),
            "strand": str(self._strand),
            "score_only": settings.score_only,
            "scores": scores,
            "pruning": settings.pruning,
            "memory_bytes": settings.memory,
            "counts": {"pairs": self._pairs, "aligned": self._aligned, "cells": self._cells},
            "gcups": round(gcups(self._cells, self.timer.seconds), 4),
        }
