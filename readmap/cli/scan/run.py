"""The scan with the queries of a file, and its report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from readmap.cli.common.alignments import Timer, cells_line, file_record, gcups, progress_line, write_plot
from readmap.cli.common.report import Show
from readmap.cli.scan.options import ScanOptions
from readmap.database.formats import ScanFormat
from readmap.database.results import QueryHits, ScanQuery
from readmap.database.search import Scan
from readmap.formats.alphabets import Alphabet
from readmap.formats.output import ByteSink
from readmap.formats.wording import pluralize
from readmap.formats.output import RecordWriter
from readmap.reads.sequences import Sequences


class ScanRun:
    """A scan with the queries of one file; `write` counts what it finds. timer: of what finding takes."""

    def __init__(self, scan: Scan, queries: Sequences) -> None:
        self._scan, self._queries = scan, queries
        self._cells = scan.cells(queries)
        self._hits, self.timer = 0, Timer()
        self._devices = [backend.name for backend in scan.pool.team.backends]

    def write(self, records: RecordWriter[QueryHits], outputs: dict[str, ByteSink], show: Show) -> None:
        """Scan with all queries, and write the results."""
        scan, write, drawing = self._scan, outputs["output"].write, None
        if "plot" in outputs:
            from readmap.database.plot import Histograms, count_scores  # nothing else needs matplotlib

            highest = scan.hit_filter.max_evalue(scan.scoring)
            drawing = Histograms("" if highest is None else f"E = {highest:g}")
        write(records.start)
        for scanned in self.timer.timed(scan(self._queries, self._progress(show))):
            hits = scanned.hits
            query = self._query(hits.query)
            records.write(QueryHits(query, hits, scan.database, scan.scoring.matrix.scores), hits.query == 0, write)
            self._hits += len(hits)
            if drawing:
                drawing.add(query.name, count_scores(scanned.scores), hits.scores, scanned.threshold)
        write(records.end)
        if drawing:
            write_plot(drawing.draw, outputs["plot"], show)

    def _progress(self, show: Show) -> Callable[[int], None]:
        """A function that takes the cells computed since its last call, and shows the progress."""
        done, began = 0, time.perf_counter()

        def progress(cells: int) -> None:
            nonlocal done
            done += cells
            show(progress_line(done, self._cells, time.perf_counter() - began), bar=done / max(self._cells, 1))

        return progress

    def _query(self, number: int) -> ScanQuery:
        queries = self._queries
        letters = queries.letters[queries.offsets[number] : queries.offsets[number + 1]]
        return ScanQuery(queries.names[number], queries.titles[number], letters)

    def line(self) -> str:
        """The summary in words."""
        queries, sequences = pluralize(len(self._queries), "query", "queries"), len(self._scan.database)
        cells = cells_line(self._cells, self.timer.seconds, ", ".join(self._devices))
        return f"{queries} and {pluralize(sequences, 'sequence')}, {pluralize(self._hits, 'hit')}: {cells}"

    def record(self, options: ScanOptions, format: ScanFormat) -> dict[str, Any]:
        """The summary for programs."""
        queries, database = self._queries, self._scan.database
        scoring, hit_filter = self._scan.scoring, self._scan.hit_filter
        return {
            "query": file_record(options.query, len(queries), len(queries.letters)),
            "database": file_record(options.database, len(database), database.letters),
            "molecule": str(database.molecule),
            "devices": self._devices,
            "threads": options.resources.workers,
            "matrix": scoring.matrix.name,
            "gap_open": scoring.gap_open,
            "gap_extend": scoring.gap_extend,
            "strand": str(hit_filter.strand) if database.molecule is Alphabet.NUCLEOTIDES else None,
            "evalue": hit_filter.max_evalue(scoring),
            "min_score": hit_filter.min_score,
            "max_hits": hit_filter.max_hits,
            "dbsize": hit_filter.database_letters,
            "format": str(format),
            "counts": {"hits": self._hits, "cells": self._cells},
            "gcups": round(gcups(self._cells, self.timer.seconds), 4),
        }
