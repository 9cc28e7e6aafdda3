"""readmap compare: two files of sequences to alignments."""

from __future__ import annotations

import time

import typer

from readmap.backend.team import Team
from readmap.cli.common.alignments import check_files, open_outputs, progress_line, write_plot
from readmap.cli.common.options import command
from readmap.cli.common.report import Report, Show
from readmap.cli.compare.options import CompareOptions, refuse_conflicts
from readmap.cli.compare.run import ComparisonRun
from readmap.formats.output import ByteSink
from readmap.formats.wording import printable
from readmap.formats.output import RecordWriter
from readmap.pairwise.checkpoint import remove_checkpoints
from readmap.pairwise.comparison import check_same_count
from readmap.pairwise.formats import writer
from readmap.pairwise.results import Results
from readmap.reads.sequences import read_sequences
from readmap.version import __version__

EXAMPLES = r"""[bold]Examples[/]
  $ readmap compare one.fa other.fa
  $ readmap compare one.fa.gz other.fa.gz -o out.paf --plot out.png --strand both
  $ readmap compare chr21.fa chr22.fa --score-only --checkpoint work
  $ readmap compare --pairs queries.fa targets.fa --mode semiglobal -o out.tsv
  $ readmap compare --pairs queries.fa targets.fa --format sam | samtools view -b -o out.bam"""


@command
def compare(context: typer.Context, options: CompareOptions) -> None:
    """Align two sequences of any length by Smith-Waterman, exactly, or many short pairs (--pairs).

    Every sequence of QUERY is aligned with every one of TARGET.

    The output is the same on every device, for any number of them and of threads.
    """
    refuse_conflicts(context, options)
    checkpoint, output = options.settings().checkpoint, options.output
    check_files(options.query, options.target, output.path, output.plot, options.report.json)
    with (
        Report(context.obj, options.report) as report,
        open_outputs(output.path, output.plot, options.resources.workers) as outputs,
        options.resources.open_team() as team,
    ):
        with report.progress() as show:
            run = _read(options, team, show)
            reading = report.seconds
            # Of no index: the types that its suffixes decide are any.
            for backend in team.backends:
                backend.compile_missing((), ("common", "pairwise", "reads"), report.say)
            records = writer(output.format, run.targets, __version__, report.command_line)
            _write(run, records, outputs, show)
        names = {name: printable(sink.name) for name, sink in outputs.items()}
        seconds = {"read": round(reading, 4), "compare": round(run.timer.seconds, 4)}
        record = run.record() | names | {"format": str(output.format), "seconds": seconds}
        report.finish(record, list(outputs.values()))
        if checkpoint:
            remove_checkpoints(checkpoint)
        for line in [run.line(), report.cost()]:
            report.say(line)


def _read(options: CompareOptions, team: Team, show: Show) -> ComparisonRun:
    """The comparison, once both files are read; raises DataError where they are no pairs and should be."""
    files = []
    for path in (options.query, options.target):
        show(f"reading {printable(path)}")
        files.append(read_sequences(path, options.resources.workers))
    queries, targets = files
    if options.pairs.in_pairs:
        check_same_count(queries, targets)
    return ComparisonRun(options, queries, targets, team)


def _write(run: ComparisonRun, records: RecordWriter[Results], outputs: dict[str, ByteSink], show: Show) -> None:
    """Compare all, and write the results."""
    write, drawing = outputs["output"].write, None
    if "plot" in outputs:
        from readmap.pairwise.plot import DotPlot  # nothing else needs matplotlib

        drawing = DotPlot(run.queries, run.targets)
    began = time.perf_counter()

    def progress(done: int, total: int) -> None:
        show(progress_line(done, total, time.perf_counter() - began), bar=done / max(total, 1))

    write(records.start)
    for number, results in enumerate(run.results(progress)):
        records.write(results, number == 0, write)
        if drawing:
            drawing.add(results)
    write(records.end)
    if drawing:
        write_plot(drawing.draw, outputs["plot"], show)
