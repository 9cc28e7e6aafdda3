"""readmap scan: queries and a database to hits."""

from __future__ import annotations

from functools import partial

import typer

from readmap.cli.common.alignments import check_files, open_outputs
from readmap.cli.common.folders import molecule_of
from readmap.cli.common.options import command
from readmap.cli.common.report import Report
from readmap.cli.scan.options import ScanOptions, layout_of
from readmap.cli.scan.run import ScanRun
from readmap.database.database import Database, open_database
from readmap.database.device_pool import DevicePool
from readmap.database.formats import writer
from readmap.database.parameters import HitFilter, choose_scoring
from readmap.database.search import Scan
from readmap.formats.wording import printable
from readmap.reads.sequences import read_sequences
from readmap.version import __version__

EXAMPLES = r"""[bold]Examples[/]
  $ readmap scan query.fa proteins.fa.gz
  $ readmap index --database proteins.fa.gz && readmap scan query.fa proteins.fa.readmapdb -o hits.tsv
  $ readmap scan query.fa proteins.readmapdb --matrix BLOSUM50 --gap-open 13 --gap-extend 2 --outfmt 6
  $ readmap scan genes.fa genome.fa --evalue 1e-10 --format sam | samtools sort -o hits.bam
  $ readmap scan query.fa proteins.readmapdb --columns std,qcovs,cigar -o hits.tsv --plot scores.png"""


@command
def scan(context: typer.Context, options: ScanOptions) -> None:
    """Align queries with every sequence of a database by Smith-Waterman, exactly, and tell the best hits.

    Proteins by a substitution matrix, nucleotides on both strands; E-values are BLAST's.

    The output is the same on every device, for any number of them and of threads.
    """
    format, columns = layout_of(context, options)
    output, workers = options.output, options.resources.workers
    check_files(options.query, options.database, output.path, output.plot, options.report.json)
    with (
        Report(context.obj, options.report) as report,
        open_outputs(output.path, output.plot, workers) as outputs,
        options.resources.open_team() as team,
    ):
        with report.progress() as show:
            show(f"reading {printable(options.database)}")
            molecule = molecule_of(options.molecule)
            database = open_database(options.database, workers, molecule, not options.no_check)
            scores, hit_filter = options.scores, _limits(options, database)
            scoring = choose_scoring(
                database.molecule, scores.matrix, scores.match, scores.mismatch, scores.gap_open, scores.gap_extend
            )
            show(f"reading {printable(options.query)}")
            queries = read_sequences(options.query, workers, database.molecule)
            records = writer(format, database, __version__, report.command_line, columns)
            reading = report.seconds
            # Of no index: the types that its suffixes decide are any.
            for backend in team.backends:
                backend.compile_missing((), ("common", "database", "pairwise", "reads"), report.say)
            team.submit(0, partial(database.check, team.first)).result()
            run = ScanRun(Scan(database, scoring, hit_filter, DevicePool(database, team)), queries)
            run.write(records, outputs, show)
        sinks = {name: printable(sink.name) for name, sink in outputs.items()}
        seconds = {"read": round(reading, 4), "scan": round(run.timer.seconds, 4)}
        report.finish(run.record(options, format) | {"seconds": seconds} | sinks, list(outputs.values()))
        for line in [run.line(), report.cost()]:
            report.say(line)


def _limits(options: ScanOptions, database: Database) -> HitFilter:
    """The hit_filter of the hits that are reported; raises UsageError where the database's molecule has no strands."""
    hits, strand = options.hits, HitFilter.strand_of(database.molecule, options.scores.strand)
    return HitFilter(hits.evalue, hits.min_score, hits.max_hits, strand, hits.dbsize)
