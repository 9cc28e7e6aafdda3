"""readmap scan: queries and a database to hits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

import typer

from readmap.backend import device_names, open_backend
from readmap.backend.cpu import available_processors
from readmap.cli.compare import expect_matplotlib, open_outputs
from readmap.cli.comparing import OutputName, check_files
from readmap.cli.comparison import gcups, progress_line
from readmap.cli.database import AUTO, MoleculeName
from readmap.cli.options import Debug, Json, Quiet, Threads, parse_size
from readmap.cli.report import Report, counted, is_terminal, printable
from readmap.cli.resources import Device, GpuMemory
from readmap.cli.scanning import (
    ColumnNames,
    DatabaseSize,
    Evalue,
    FormatName,
    GapExtend,
    GapOpen,
    Gpus,
    Match,
    MatrixName,
    MaxHits,
    MinScore,
    Mismatch,
    OutFormat,
    PlotName,
    StrandName,
    layout_of,
)
from readmap.database.database import open_database
from readmap.database.device_pool import open_crew
from readmap.database.formats import Writer, writer
from readmap.database.parameters import MOST_HITS, Limits, costs_of
from readmap.database.results import Query, Results
from readmap.database.search import Scan, Scanned
from readmap.formats.alphabets import Alphabet
from readmap.formats.output import ByteSink, commit_together
from readmap.reads.sequences import Sequences, read_sequences
from readmap.version import __version__

EXAMPLES = r"""[bold]Examples[/]
  $ readmap scan query.fa proteins.fa.gz
  $ readmap index --database proteins.fa.gz && readmap scan query.fa proteins.fa.readmapdb -o hits.tsv
  $ readmap scan query.fa proteins.readmapdb --matrix BLOSUM50 --gap-open 13 --gap-extend 2 --outfmt 6
  $ readmap scan genes.fa genome.fa --evalue 1e-10 --format sam | samtools sort -o hits.bam
  $ readmap scan query.fa proteins.readmapdb --columns std,qcovs,cigar -o hits.tsv --plot scores.png"""

QueryName = Annotated[
    str,
    typer.Argument(
        metavar="QUERY",
        help="FASTA (of nucleotides FASTQ too): plain, gzip or bgzip; - is standard input.",
        show_default=False,
    ),
]
DatabaseName = Annotated[
    str,
    typer.Argument(metavar="DB", help="A database of readmap index --database, or FASTA likewise.", show_default=False),
]


def scan(
    context: typer.Context,
    query: QueryName,
    database: DatabaseName,
    matrix: MatrixName = None,
    match: Match = None,
    mismatch: Mismatch = None,
    gap_open: GapOpen = None,
    gap_extend: GapExtend = None,
    strand: StrandName = None,
    molecule: MoleculeName = AUTO,
    evalue: Evalue = None,
    max_hits: MaxHits = MOST_HITS,
    min_score: MinScore = 1,
    dbsize: DatabaseSize = None,
    output: OutputName = None,
    named_format: FormatName = None,
    outfmt: OutFormat = None,
    columns: ColumnNames = None,
    plot: PlotName = None,
    device: Device = "auto",
    gpus: Gpus = None,
    threads: Threads = None,
    gpu_memory: GpuMemory = None,
    quiet: Quiet = False,
    json: Json = None,
    debug: Debug = False,
) -> None:
    """Align queries with every sequence of a database by Smith-Waterman, exactly, and tell the best hits.

    Proteins by a substitution matrix, nucleotides on both strands; E-values are BLAST's.

    The output is the same on every device, for any number of them and of threads.
    """
    format, names = layout_of(context)
    gpu_bytes = parse_size("--gpu-memory", gpu_memory) if gpu_memory is not None else None
    check_files(query, database, output, plot, json)
    expect_matplotlib(plot)
    workers = threads or available_processors()
    with Report(context.obj, quiet, json) as report, open_outputs(output, plot, workers) as outputs:
        devices = [partial(open_backend, name, threads, gpu_bytes) for name in device_names(device, gpus)]
        with report.progress() as show:
            show(f"reading {printable(database)}")
            opened = open_database(database, workers, None if molecule == AUTO else Alphabet(molecule))
            costs = costs_of(opened.molecule, matrix, match, mismatch, gap_open, gap_extend)
            limits = Limits(evalue, min_score, max_hits, Limits.strand_of(opened.molecule, strand), dbsize)
            show(f"reading {printable(query)}")
            queries = read_sequences(query, workers, opened.molecule)
            told = writer(format, opened, __version__, report.command_line, names)
            reading = report.seconds
            with open_crew(opened, devices) as crew:
                # Of no index: the types that its suffixes decide are any.
                crew.do(lambda: crew.backend.prepare((), report.say))
                task = _Task(Scan(opened, costs, limits, crew), queries, show)
                held = task.run(told, outputs, is_terminal(output))
                device_list = crew.names
        for piece in held:
            outputs["output"].write(piece)
        commit_together(list(outputs.values()))
        report.say(task.line(device_list))
        report.say(report.cost())
        sinks = {name: printable(sink.name) for name, sink in outputs.items()}
        seconds = {"read": round(reading, 4), "scan": round(task.seconds, 4)}
        report.finish(
            {
                "query": {"source": printable(query), "sequences": len(queries), "letters": len(queries.letters)},
                "database": {"source": printable(database), "sequences": len(opened), "letters": opened.letters},
                "molecule": str(opened.molecule),
                "devices": device_list,
                "threads": workers,
                "matrix": costs.matrix.name,
                "gap_open": costs.gap_open,
                "gap_extend": costs.gap_extend,
                "strand": str(limits.strand) if opened.molecule is Alphabet.NUCLEOTIDES else None,
                "evalue": limits.highest_evalue(costs),
                "min_score": min_score,
                "max_hits": max_hits,
                "dbsize": dbsize,
                "format": str(format),
                "counts": {"hits": task.hits, "cells": task.cells},
                "gcups": round(gcups(task.cells, task.seconds), 4),
                "seconds": seconds,
            }
            | sinks
        )


class _Task:
    """A scan that is written as it goes."""

    def __init__(self, scan: Scan, queries: Sequences, show: Callable[[str], None]) -> None:
        self._scan, self._queries, self._show = scan, queries, show
        self.cells = scan.cells(queries)
        self.hits, self.seconds, self._done = 0, 0.0, 0

    def run(self, told: Writer, outputs: dict[str, ByteSink], is_held: bool) -> list[bytes]:
        """Write all; what is to be held back for the progress to end is returned."""
        held: list[bytes] = []
        write = held.append if is_held else outputs["output"].write
        drawing = None
        if "plot" in outputs:
            from readmap.database.plot import Plot, count_scores  # nothing else needs matplotlib

            highest = self._scan.limits.highest_evalue(self._scan.costs)
            drawing = Plot("" if highest is None else f"E = {highest:g}")
        write(told.begin)
        for scanned in self._scanned():
            query = self._query(scanned.hits.query)
            results = Results(query, scanned.hits, self._scan.database, self._scan.costs.matrix.scores)
            told.write(results, scanned.hits.query == 0, write)
            self.hits += len(scanned.hits)
            if drawing:
                drawing.add(query.name, count_scores(scanned.scores), scanned.hits.scores, scanned.threshold)
        write(told.end)
        if drawing:
            self._show("drawing")
            sink = outputs["plot"]
            sink.write(drawing.draw(os.path.splitext(sink.name)[1][1:]))
        return held

    def _scanned(self) -> Iterator[Scanned]:
        """What is found, with the time that finding it took."""
        began = time.perf_counter()

        def tell(cells: int) -> None:
            self._done += cells
            self._show(progress_line(self._done, self.cells, time.perf_counter() - began))

        found = self._scan(self._queries, tell)
        while True:
            started = time.perf_counter()
            scanned = next(found, None)
            self.seconds += time.perf_counter() - started
            if scanned is None:
                return
            yield scanned

    def _query(self, number: int) -> Query:
        queries = self._queries
        letters = queries.letters[queries.offsets[number] : queries.offsets[number + 1]]
        return Query(queries.names[number], queries.titles[number], letters)

    def line(self, devices: list[str]) -> str:
        """What was done, in words."""
        queries, database = self._queries, self._scan.database
        return (
            f"{counted(len(queries), 'query', 'queries')} and {counted(len(database), 'sequence')}, "
            f"{counted(self.hits, 'hit')}: {self.cells:,} cells in {self.seconds:.2f} s, "
            f"{gcups(self.cells, self.seconds):,.2f} GCUPS on {', '.join(devices)}"
        )
