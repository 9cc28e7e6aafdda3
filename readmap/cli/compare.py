"""readmap compare: align the sequences of two files."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from readmap.backend.team import Team
from readmap.cli.common import alignments
from readmap.cli.common.options import (
    MAX_SCORE,
    argument,
    choice,
    command,
    flag,
    names_of,
    option,
    option_group,
    parse_size,
    refuse_conflicts,
    score,
    size,
)
from readmap.cli.common.report import Report, ReportOptions, Show
from readmap.cli.common.shared_options import MultiGpuResources
from readmap.formats.output import ByteSink, RecordWriter, format_by_ending
from readmap.formats.wording import pluralize, printable
from readmap.pairwise.checkpoint import remove_checkpoints
from readmap.pairwise.comparison import check_same_count, compare_all, compare_pairs, count_cells
from readmap.pairwise.formats import ENDINGS, ComparisonFormat, writer
from readmap.pairwise.parameters import CompareSettings, MatchScores, Mode
from readmap.pairwise.results import Results
from readmap.reads.sequences import Sequences, read_sequences
from readmap.run.devices import describe_devices
from readmap.strand import Strand
from readmap.version import __version__

EXAMPLES = r"""[bold]Examples[/]
  $ readmap compare one.fa other.fa
  $ readmap compare one.fa.gz other.fa.gz -o out.paf --plot out.png --strand both
  $ readmap compare chr21.fa chr22.fa --score-only --checkpoint work
  $ readmap compare --pairs queries.fa targets.fa --mode semiglobal -o out.tsv
  $ readmap compare --pairs queries.fa targets.fa --format sam | samtools view -b -o out.bam"""

SCORES = MatchScores()
GAP_FIRST = SCORES.gap_open + SCORES.gap_extend


@option_group("Output")
class ComparisonOutput:
    """The outputs and their format."""

    path: str | None = alignments.output_option()
    named_format: str | None = choice(
        "--format", "summary, text, paf, sam, tsv or json (default: by -o, else summary).", ComparisonFormat
    )
    plot: str | None = alignments.plot_option("the alignments as a dot plot")

    @property
    def format(self) -> ComparisonFormat:
        """The format of the output."""
        return ComparisonFormat(self.named_format or format_by_ending(self.path, ENDINGS) or ComparisonFormat.SUMMARY)


@option_group("Pairs")
class ComparedPairs:
    """Alignment of pairs."""

    in_pairs: bool = flag("--pairs", "Align each query only with the target of the same record number.")
    mode: str = choice(
        "--mode",
        "local, global or semiglobal: all of the query, part of the target (default: local).",
        Mode,
        default=Mode.LOCAL,
    )


@option_group("Alignment")
class AlignmentOptions:
    """Scores and strands."""

    match: int = score("--match", "Score of a match", SCORES.match, 1)
    mismatch: int = score("--mismatch", "Penalty of a mismatch", SCORES.mismatch, 0)
    gap_first: int = score("--gap-first", "Penalty of the first letter of a gap", GAP_FIRST, 1, 2 * MAX_SCORE)
    gap_extend: int = score("--gap-extend", "Penalty of each further letter of a gap", SCORES.gap_extend, 1)
    strand: str = choice(
        "--strand",
        "Strand of the query: forward, reverse, or both: the better one (default: forward).",
        Strand,
        default=Strand.FORWARD,
    )
    score_only: bool = flag("--score-only", "Compute scores and end positions, without alignments.")

    def scores(self) -> MatchScores:
        """Return the scores; raises UsageError if the first letter of a gap costs less than a further one."""
        return MatchScores.from_gap_first(self.match, self.mismatch, self.gap_first, self.gap_extend)


@option_group("Long sequences (without --pairs)")
class LongOptions:
    """Comparison of long sequences."""

    checkpoint: str | None = option("--checkpoint", "Save work in this folder; the same command continues it.", "DIR")
    memory: str | None = size(
        "--memory",
        "Memory for traceback, such as 8G (default: a quarter of the free GPU memory, 1G on the CPU). Same output.",
        advanced=True,
    )
    no_pruning: bool = flag(
        "--no-pruning", "Compute cells that cannot reach the best score too. Same output.", advanced=True
    )


@option_group()
class CompareOptions:
    """All options of readmap compare."""

    query: str = argument("QUERY", "FASTA or FASTQ (plain, gzip or bgzip); - is standard input.")
    target: str = argument("TARGET", "FASTA or FASTQ (plain, gzip or bgzip); - is standard input.")
    output: ComparisonOutput
    pairs: ComparedPairs
    alignment: AlignmentOptions
    long: LongOptions
    resources: MultiGpuResources
    report: ReportOptions

    def settings(self) -> CompareSettings:
        """Return the settings of long comparisons; raises UsageError if the scores contradict each other."""
        long, score_only = self.long, self.alignment.score_only
        memory, folder = parse_size("--memory", long.memory), Path(long.checkpoint) if long.checkpoint else None
        return CompareSettings(self.alignment.scores(), score_only, not long.no_pruning, memory, folder)


@command
def compare(context: typer.Context, options: CompareOptions) -> None:
    """Align two sequences of any length with exact Smith-Waterman, or many pairs of short sequences (--pairs).

    Every sequence of QUERY is aligned with every sequence of TARGET.

    The output is the same on every device, for any number of devices and threads.
    """
    _check_options(context, options)
    checkpoint, output = options.settings().checkpoint, options.output
    alignments.check_files(options.query, options.target, output.path, output.plot, options.report.json)
    with (
        Report(context.obj, options.report) as report,
        alignments.open_outputs(output.path, output.plot, options.resources.workers) as outputs,
        options.resources.open_team() as team,
    ):
        with report.progress() as show:
            files = []
            for path in (options.query, options.target):
                show(f"reading {printable(path)}")
                files.append(read_sequences(path, options.resources.workers))
            queries, targets = files
            if options.pairs.in_pairs:
                check_same_count(queries, targets)
            comparison, read_seconds = _Comparison(options, queries, targets, team), report.seconds
            # () for the types of an index: any will do.
            for backend in team.backends:
                backend.compile_missing((), ("common", "pairwise", "reads"), report.say)
            records = writer(output.format, comparison.targets, __version__, report.command_line)
            comparison.write(records, outputs, show)
        names = {name: printable(sink.name) for name, sink in outputs.items()}
        seconds = {"read": round(read_seconds, 4), "compare": round(comparison.timer.seconds, 4)}
        result = comparison.as_json() | names | {"format": str(output.format), "seconds": seconds}
        report.finish(result, list(outputs.values()))
        if checkpoint:
            remove_checkpoints(checkpoint)
        for line in [comparison.describe(), report.cost()]:
            report.say(line)


def _check_options(context: typer.Context, options: CompareOptions) -> None:
    """Raise UsageError if options contradict each other."""
    in_pairs, score_only, output = options.pairs.in_pairs, options.alignment.score_only, options.output
    needs_alignments = f"{output.format} reports alignments: choose summary, tsv or json"
    conflicts = (
        (names_of(LongOptions), in_pairs, "not with --pairs, which are short"),
        (["mode"], not in_pairs, "only with --pairs; without --pairs alignments are local"),
        (["score_only"], output.format.needs_operations, needs_alignments),
        (["plot"], score_only, "not with --score-only: there is no alignment to draw"),
        *alignments.output_conflicts(output.path, output.plot),
    )
    refuse_conflicts(context, conflicts)


class _Comparison:
    """A comparison of the sequences of two files; timer: measures the time of the results."""

    def __init__(self, options: CompareOptions, queries: Sequences, targets: Sequences, team: Team) -> None:
        self.queries, self.targets = queries, targets
        self._options, self._team = options, team
        self._settings, self._strand = options.settings(), Strand(options.alignment.strand)
        self._mode, self._in_pairs = Mode(options.pairs.mode), options.pairs.in_pairs
        self._cells = count_cells(queries, targets, self._strand, self._in_pairs)
        self._pairs, self._aligned, self.timer = 0, 0, alignments.Timer()

    def write(self, records: RecordWriter[Results], outputs: dict[str, ByteSink], show: Show) -> None:
        """Compare all sequences, write and count the results."""
        plot, files, progress = None, (self.queries, self.targets, self._settings), alignments.cells_progress(show)
        if "plot" in outputs:
            from readmap.pairwise.plot import DotPlot  # imports matplotlib

            plot = DotPlot(self.queries, self.targets)
        if self._in_pairs:
            found = compare_pairs(*files, self._mode, self._strand, self._team, progress)
        else:
            found = compare_all(*files, self._strand, self._team, progress)

        def results() -> Iterator[Results]:
            for each in self.timer.timed(found):
                self._pairs += len(each.queries)
                self._aligned += int((each.ranges[3] >= 0).sum())
                if plot:
                    plot.add(each)
                yield each

        alignments.write_results(results(), records, outputs, plot, show)

    def describe(self) -> str:
        """Return the summary as text."""
        cells = alignments.cells_line(self._cells, self.timer.seconds, describe_devices(self._team.backends))
        return f"{pluralize(self._pairs, 'pair')}, {self._aligned:,} aligned: {cells}"

    def as_json(self) -> dict[str, Any]:
        """Return the summary for the JSON report."""
        settings = self._settings
        scores = asdict(self._options.alignment.scores())
        scores["gap_first"] = scores.pop("gap_open") + scores["gap_extend"]
        return {
            "query": alignments.file_as_json(self._options.query, len(self.queries), len(self.queries.letters)),
            "target": alignments.file_as_json(self._options.target, len(self.targets), len(self.targets.letters)),
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
            "gcups": round(alignments.gcups(self._cells, self.timer.seconds), 4),
        }
