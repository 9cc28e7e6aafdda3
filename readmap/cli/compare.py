"""readmap compare: two files of sequences to alignments."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import time
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from readmap.backend import Backend, open_backend
from readmap.backend.cpu import available_processors
from readmap.cli.comparing import (
    Checkpoint,
    FormatName,
    GapExtend,
    GapFirst,
    InPairs,
    Match,
    Memory,
    Mismatch,
    ModeName,
    NoPruning,
    OutputName,
    PlotName,
    ScoreOnly,
    StrandName,
    check_files,
    format_of,
    refuse_conflicts,
    settings_of,
)
from readmap.cli.comparison import Work, progress_line
from readmap.cli.options import Debug, Json, Quiet, Threads, parse_size
from readmap.cli.output import open_plain
from readmap.cli.report import Report, is_terminal, printable
from readmap.cli.resources import Device, GpuMemory
from readmap.errors import ReadmapError
from readmap.formats.output import ByteSink, commit_together, open_output
from readmap.pairwise.checkpoint import forget
from readmap.pairwise.comparison import expect_partners
from readmap.pairwise.formats import Writer, writer
from readmap.pairwise.parameters import Mode, Scores, Settings
from readmap.reads.sequences import read_sequences
from readmap.strand import Strand
from readmap.version import __version__

EXAMPLES = r"""[bold]Examples[/]
  $ readmap compare one.fa other.fa
  $ readmap compare one.fa.gz other.fa.gz -o out.paf --plot out.png --strand both
  $ readmap compare chr21.fa chr22.fa --score-only --checkpoint work
  $ readmap compare --pairs queries.fa targets.fa --mode semiglobal -o out.tsv
  $ readmap compare --pairs queries.fa targets.fa --format sam | samtools view -b -o out.bam"""

QueryName = Annotated[
    str,
    typer.Argument(
        metavar="QUERY", help="FASTA or FASTQ: plain, gzip or bgzip; - is standard input.", show_default=False
    ),
]
TargetName = Annotated[str, typer.Argument(metavar="TARGET", help="Likewise.", show_default=False)]


def compare(
    context: typer.Context,
    query: QueryName,
    target: TargetName,
    no_pruning: NoPruning = False,
    memory: Memory = None,
    checkpoint: Checkpoint = None,
    in_pairs: InPairs = False,
    mode: ModeName = Mode.LOCAL,
    match: Match = 1,
    mismatch: Mismatch = 3,
    gap_first: GapFirst = 5,
    gap_extend: GapExtend = 2,
    strand: StrandName = Strand.FORWARD,
    score_only: ScoreOnly = False,
    output: OutputName = None,
    named_format: FormatName = None,
    plot: PlotName = None,
    device: Device = "auto",
    threads: Threads = None,
    gpu_memory: GpuMemory = None,
    quiet: Quiet = False,
    json: Json = None,
    debug: Debug = False,
) -> None:
    """Align two sequences of any length by Smith-Waterman, exactly, or many short pairs (--pairs).

    Every sequence of QUERY is aligned with every one of TARGET.

    The output is the same on every device and for any number of threads.
    """
    refuse_conflicts(context)
    written = format_of(named_format, output)
    scores = Scores.of_first_gap(match, mismatch, gap_first, gap_extend)
    settings = settings_of(scores, score_only, no_pruning, memory, checkpoint)
    gpu_bytes = parse_size("--gpu-memory", gpu_memory) if gpu_memory is not None else None
    check_files(query, target, output, plot, json)
    expect_matplotlib(plot)
    workers = threads or available_processors()
    with Report(context.obj, quiet, json) as report, open_outputs(output, plot, workers) as outputs:
        backend = open_backend(device, threads, gpu_bytes)
        with report.progress() as show:
            work = _read(query, target, in_pairs, Mode(mode), Strand(strand), settings, backend, workers, show)
            reading = report.seconds
            # Of no index: the types that its suffixes decide are any.
            backend.prepare((), report.say)
            told = writer(written, work.targets, __version__, report.command_line)
            held = _run(work, told, outputs, is_terminal(output), show)
        for piece in held:
            outputs["output"].write(piece)
        commit_together(list(outputs.values()))
        if settings.checkpoint:
            forget(settings.checkpoint)
        for line in [work.line(), report.cost()]:
            report.say(line)
        names = {name: printable(sink.name) for name, sink in outputs.items()}
        seconds = {"read": round(reading, 4), "compare": round(work.summary.seconds, 4)}
        report.finish(work.record() | names | {"format": str(written), "seconds": seconds})


def expect_matplotlib(plot: str | None) -> None:
    """Raise ReadmapError where a plot is wanted, and nothing is there to draw it."""
    if plot is not None and importlib.util.find_spec("matplotlib") is None:
        raise ReadmapError(f"--plot {plot}: matplotlib is not installed: pip install 'readmap[plot]'")


@contextlib.contextmanager
def open_outputs(output: str | None, plot: str | None, threads: int) -> Iterator[dict[str, ByteSink]]:
    """The outputs by what the record calls them. What has not been committed in the end is aborted."""
    with contextlib.ExitStack() as stack:
        outputs = {"output": stack.enter_context(open_plain(output, threads))}
        if plot is not None:
            outputs["plot"] = stack.enter_context(open_output(plot))
        yield outputs


def _read(
    query: str,
    target: str,
    in_pairs: bool,
    mode: Mode,
    strand: Strand,
    settings: Settings,
    backend: Backend,
    threads: int,
    show: Callable[[str], None],
) -> Work:
    """The work, once both files are read; raises DataError where they are no pairs and should be."""
    files = []
    for path in (query, target):
        show(f"reading {printable(path)}")
        files.append(read_sequences(path, threads))
    queries, targets = files
    if in_pairs:
        expect_partners(queries, targets)
    return Work((query, target), queries, targets, in_pairs, mode, strand, settings, backend)


def _run(
    work: Work, told: Writer, outputs: dict[str, ByteSink], is_held: bool, show: Callable[[str], None]
) -> list[bytes]:
    """Compares all, and writes the results; what is to be held back for the progress to end is returned."""
    held: list[bytes] = []
    write = held.append if is_held else outputs["output"].write
    drawing = None
    if "plot" in outputs:
        from readmap.pairwise.plot import Plot  # nothing else needs matplotlib

        drawing = Plot(work.queries, work.targets)
    began = time.perf_counter()

    def progress(done: int, total: int) -> None:
        show(progress_line(done, total, time.perf_counter() - began))

    write(told.begin)
    is_first = True
    for results in work.results(progress):
        told.write(results, is_first, write)
        is_first = False
        if drawing:
            drawing.add(results)
    write(told.end)
    if drawing:
        show("drawing")
        sink = outputs["plot"]
        sink.write(drawing.draw(os.path.splitext(sink.name)[1][1:]))
    return held
