"""readmap scan: align queries with all sequences of a database."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import typer

from readmap.cli.common import alignments
from readmap.cli.common.folders import DATABASES, molecule_of, molecule_option
from readmap.cli.common.options import (
    MAX_SCORE,
    argument,
    choice,
    command,
    no_check_option,
    number,
    option,
    option_group,
    refuse_conflicts,
)
from readmap.cli.common.report import Report, ReportOptions, Show
from readmap.cli.common.shared_options import MultiGpuResources, gpus_option
from readmap.database.database import open_database
from readmap.database.device_pool import DevicePool
from readmap.database.formats import ENDINGS, ScanFormat, tab, writer
from readmap.database.matrices import STANDARD
from readmap.database.parameters import EVALUE, MATCH, MATRIX, MAX_HITS, MISMATCH, HitFilter, choose_scoring
from readmap.database.results import QueryHits, ScanQuery
from readmap.database.search import Scan
from readmap.errors import UsageError
from readmap.formats.alphabets import Alphabet
from readmap.formats.output import ByteSink, RecordWriter, format_by_ending
from readmap.formats.wording import pluralize, printable
from readmap.reads.sequences import Sequences, read_sequences
from readmap.strand import Strand
from readmap.version import __version__

EXAMPLES = r"""[bold]Examples[/]
  $ readmap scan query.fa proteins.fa.gz
  $ readmap index --database proteins.fa.gz && readmap scan query.fa proteins.fa.readmapdb -o hits.tsv
  $ readmap scan query.fa proteins.readmapdb --matrix BLOSUM50 --gap-open 13 --gap-extend 2 --outfmt 6
  $ readmap scan genes.fa genome.fa --evalue 1e-10 --format sam | samtools sort -o hits.bam
  $ readmap scan query.fa proteins.readmapdb --columns std,qcovs,cigar -o hits.tsv --plot scores.png"""


@option_group("Output")
class ScanOutput:
    """The outputs, their format and its columns."""

    path: str | None = alignments.output_option()
    format: str | None = choice(
        "--format", "text (alignments), tab (BLAST's table), json or sam (default: by -o, else text).", ScanFormat
    )
    outfmt: str | None = option(
        "--outfmt", "As in BLAST: 0 is text, 6 is tab; '6 qseqid sseqid' also sets columns.", "N"
    )
    columns: str | None = option(
        "--columns",
        "BLAST's columns for --format tab, such as qseqid,sseqid,score,cigar (default: std, twelve).",
        "NAMES",
    )
    plot: str | None = alignments.plot_option("the scores of all database sequences, with hits marked")


@option_group("Hits")
class HitOptions:
    """The hits that are reported."""

    evalue: float | None = option("--evalue", f"Maximum E-value (default: {EVALUE:g}).", "X")
    max_hits: int = number("--max-hits", f"Best hits per query (default: {MAX_HITS}).", 1, 1 << 31, default=MAX_HITS)
    min_score: int = number("--min-score", "Minimum score (default: 1).", 1, 1 << 30, default=1)
    dbsize: int | None = number(
        "--dbsize", "Database letters for E-values (default: actual).", 1, 1 << 60, advanced=True
    )


@option_group("Alignment")
class ScoreOptions:
    """Scores and strands."""

    matrix: str | None = option(
        "--matrix", f"{', '.join(STANDARD)}, or a file in NCBI format (default: {MATRIX} for proteins).", "NAME"
    )
    match: int | None = number("--match", f"Nucleotides: score of a match (default: {MATCH}).", 1, MAX_SCORE)
    mismatch: int | None = number("--mismatch", f"Nucleotides: mismatch penalty (default: {MISMATCH}).", 0, MAX_SCORE)
    gap_open: int | None = number(
        "--gap-open",
        "Penalty of a gap, plus --gap-extend per letter (default: BLAST's, 11 for BLOSUM62, 5 for +2/-3).",
        0,
        MAX_SCORE,
    )
    gap_extend: int | None = number(
        "--gap-extend", "Penalty of each gap letter (default: BLAST's, 1 and 2).", 1, MAX_SCORE
    )
    strand: str | None = choice("--strand", "Nucleotides: forward, reverse or both (default: both).", Strand)


@option_group()
class ScanResources(MultiGpuResources):
    """The devices, the threads and the memory of a scan, which uses all GPUs."""

    gpus: str = gpus_option("all")


@option_group()
class ScanOptions:
    """All options of readmap scan."""

    query: str = argument("QUERY", "FASTA, or FASTQ of nucleotides (plain, gzip or bgzip); - is standard input.")
    database: str = argument("DB", "Database made by readmap index --database, or a file like QUERY.")
    output: ScanOutput
    hits: HitOptions
    scores: ScoreOptions
    molecule: str = molecule_option()
    no_check: bool = no_check_option("database", panel=DATABASES)
    resources: ScanResources
    report: ReportOptions


@command
def scan(context: typer.Context, options: ScanOptions) -> None:
    """Align queries with all sequences of a database with exact Smith-Waterman, and report the best hits.

    Proteins are scored by a substitution matrix, nucleotides on both strands; E-values are computed as in BLAST.

    The output is the same on every device, for any number of devices and threads.
    """
    format, columns = _choose_format(context, options)
    output, workers = options.output, options.resources.workers
    alignments.check_files(options.query, options.database, output.path, output.plot, options.report.json)
    with (
        Report(context.obj, options.report) as report,
        alignments.open_outputs(output.path, output.plot, workers) as outputs,
        options.resources.open_team() as team,
    ):
        with report.progress() as show:
            show(f"reading {printable(options.database)}")
            molecule = molecule_of(options.molecule)
            database = open_database(options.database, workers, molecule, not options.no_check)
            scores, hits = options.scores, options.hits
            strand = HitFilter.strand_of(database.molecule, scores.strand)  # raises UsageError for proteins
            hit_filter = HitFilter(hits.evalue, hits.min_score, hits.max_hits, strand, hits.dbsize)
            scoring = choose_scoring(
                database.molecule, scores.matrix, scores.match, scores.mismatch, scores.gap_open, scores.gap_extend
            )
            show(f"reading {printable(options.query)}")
            queries = read_sequences(options.query, workers, database.molecule)
            records = writer(format, database, __version__, report.command_line, columns)
            read_seconds = report.seconds
            # () for the types of an index: any will do.
            for backend in team.backends:
                backend.compile_missing((), ("common", "database", "pairwise", "reads"), report.say)
            team.submit(0, partial(database.check, team.first)).result()
            run = _ScanRun(Scan(database, scoring, hit_filter, DevicePool(database, team)), queries)
            run.write(records, outputs, show)
        names = {name: printable(sink.name) for name, sink in outputs.items()}
        seconds = {"read": round(read_seconds, 4), "scan": round(run.timer.seconds, 4)}
        report.finish(run.as_json(options, format) | {"seconds": seconds} | names, list(outputs.values()))
        for line in [run.describe(), report.cost()]:
            report.say(line)


def _choose_format(context: typer.Context, options: ScanOptions) -> tuple[ScanFormat, tuple[str, ...]]:
    """Return the format of the output and the columns of a table; raise UsageError if options contradict each other."""
    output = options.output
    name, columns = output.format, output.columns
    if output.outfmt is not None:
        named, more = _parse_outfmt(output.outfmt)
        refuse_conflicts(context, [(["format"], True, "not with --outfmt, which sets the format")])
        refuse_conflicts(context, [(["columns"], more is not None, "not with the columns of --outfmt")])
        name, columns = named, more or columns
    format = ScanFormat(name) if name else format_by_ending(output.path, ENDINGS) or ScanFormat.TEXT
    conflicts = (
        (["columns"], format is not ScanFormat.TAB, f"only with --format tab, and {format} is written"),
        (["match", "mismatch"], options.scores.matrix is not None, "not with --matrix, which scores all letters"),
        *alignments.output_conflicts(output.path, output.plot),
    )
    refuse_conflicts(context, conflicts)
    return format, tab.parse_columns(columns) if columns is not None else tab.STANDARD


def _parse_outfmt(text: str) -> tuple[ScanFormat, str | None]:
    """Return the format and the columns, if any, of --outfmt; raise UsageError for other formats than 0 and 6."""
    found = re.fullmatch(r"\s*(0|6)(?:\s+(\S.*?))?\s*", text)
    if not found or (found[1] == "0" and found[2]):
        raise UsageError(f"--outfmt {text}: expected 0 (text), 6 (table), or 6 and names of columns")
    return (ScanFormat.TEXT if found[1] == "0" else ScanFormat.TAB), found[2]


class _ScanRun:
    """A scan with the queries of a file; timer: measures the time of the results."""

    def __init__(self, scan: Scan, queries: Sequences) -> None:
        self._scan, self._queries = scan, queries
        self._cells = scan.cells(queries)
        self._hits, self.timer = 0, alignments.Timer()
        self._devices = [backend.name for backend in scan.pool.team.backends]

    def write(self, records: RecordWriter[QueryHits], outputs: dict[str, ByteSink], show: Show) -> None:
        """Scan with all queries, write and count the results."""
        scan, plot = self._scan, None
        if "plot" in outputs:
            from readmap.database.plot import Histograms, count_scores  # imports matplotlib

            evalue = scan.hit_filter.max_evalue(scan.scoring)
            plot = Histograms("" if evalue is None else f"E = {evalue:g}")
        done, progress = 0, alignments.cells_progress(show)

        def add(cells: int) -> None:
            nonlocal done
            done += cells
            progress(done, self._cells)

        def results() -> Iterator[QueryHits]:
            queries = self._queries
            for scanned in self.timer.timed(scan(queries, add)):
                hits, i = scanned.hits, scanned.hits.query
                letters = queries.letters[queries.offsets[i] : queries.offsets[i + 1]]
                self._hits += len(hits)
                if plot:
                    plot.add(queries.names[i], count_scores(scanned.scores), hits.scores, scanned.threshold)
                query = ScanQuery(queries.names[i], queries.titles[i], letters)
                yield QueryHits(query, hits, scan.database, scan.scoring.matrix.scores)

        alignments.write_results(results(), records, outputs, plot, show)

    def describe(self) -> str:
        """Return the summary as text."""
        queries, sequences = pluralize(len(self._queries), "query", "queries"), len(self._scan.database)
        cells = alignments.cells_line(self._cells, self.timer.seconds, ", ".join(self._devices))
        return f"{queries} and {pluralize(sequences, 'sequence')}, {pluralize(self._hits, 'hit')}: {cells}"

    def as_json(self, options: ScanOptions, format: ScanFormat) -> dict[str, Any]:
        """Return the summary for the JSON report."""
        queries, database = self._queries, self._scan.database
        scoring, hit_filter = self._scan.scoring, self._scan.hit_filter
        return {
            "query": alignments.file_as_json(options.query, len(queries), len(queries.letters)),
            "database": alignments.file_as_json(options.database, len(database), database.letters),
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
            "gcups": round(alignments.gcups(self._cells, self.timer.seconds), 4),
        }
