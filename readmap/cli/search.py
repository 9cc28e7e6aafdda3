"""readmap search: reads to SAM, or to tables of exact occurrences."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from readmap.backend import Backend, open_backend
from readmap.backend.cpu import available_processors
from readmap.cli.exact import (
    CountOnly,
    Exact,
    FormatName,
    MaxHits,
    NoPrefixTable,
    StrandName,
    StructureName,
    exact_task,
    format_of,
    refuse_conflicts,
)
from readmap.cli.inputs import alternates_beside, check_output, check_reads, is_older_than_source, layout_of
from readmap.cli.mapping import MappingTask
from readmap.cli.options import FLAG, RESOURCES, Debug, Json, Quiet, Threads, device_option, in_range, parse_size
from readmap.cli.output import (
    HeaderLines,
    OutputName,
    ReadGroupLine,
    Sort,
    SortMemory,
    memory_to_sort,
    open_sink,
)
from readmap.cli.reads import Additions, Comments, KeepTags, ReplaceReadGroup, open_all
from readmap.cli.report import (
    STANDARD_OUTPUT,
    Report,
    in_bytes,
    printable,
    rate,
    reference_checksum,
    refuse_same_output,
)
from readmap.cli.scoring import Clip, GapExtend, GapOpen, Match, MinScore, Mismatch, scaled
from readmap.errors import IndexFolderError
from readmap.formats.chunks import Layout
from readmap.formats.fasta import Contig
from readmap.formats.header import parse_header_lines
from readmap.formats.output import ByteSink
from readmap.formats.sam import NO_READ_GROUP, Form, parse_read_group
from readmap.index import folder
from readmap.index.device import DeviceIndex, Structure
from readmap.index.index import Index
from readmap.index.occurrences import Strand
from readmap.index.suffix_array import kernel_types
from readmap.search import stream
from readmap.search.exact import Format

EXAMPLES = r"""[bold]Examples[/]
  $ readmap search reads.fq.gz -x ref.fa -o out.sam
  $ cat *.fq.gz | readmap search - -x ref.fa -o sorted.bam --sort
  $ readmap search reads.fq -x ref.fa -R '@RG\tID:run1\tSM:sample' -o out.sam
  $ readmap search reads.fq -x ref.fa --exact -o places.bed
  $ readmap search primers.fa -x ref.fa --exact --count-only"""

Reads = Annotated[
    list[str],
    typer.Argument(
        metavar="READS",
        help="Reads up to 10,000 bases, or two files of pairs, as FASTQ or FASTA (plain, gzip or bgzip), BAM or CRAM; "
        "- is standard input.",
        show_default=False,
    ),
]
Interleaved = Annotated[
    bool,
    typer.Option(
        "-p",
        "--interleaved",
        metavar=FLAG,
        help="The reads of one file are pairs: mates alternate.",
        show_default=False,
    ),
]
IndexName = Annotated[
    str | None,
    typer.Option(
        "-x",
        "--index",
        metavar="INDEX",
        help="The index folder, or the FASTA that it was made from "
        "(default: $READMAP_INDEX, else the one *.readmap of the current folder).",
        show_default=False,
    ),
]
Device = Annotated[str, device_option("a GPU where there is one")]
GpuMemory = Annotated[
    str | None,
    typer.Option(
        "--gpu-memory",
        metavar="SIZE",
        help="Most GPU memory to take, as 8G or 500M (default: all that is free).",
        show_default=False,
        rich_help_panel=RESOURCES,
    ),
]
BatchReads = Annotated[
    int | None,
    typer.Option(
        "--batch-reads",
        metavar="N",
        callback=in_range(1, 1 << 31),
        help="Most reads to search together (default: by their bytes). The output is the same.",
        show_default=False,
        rich_help_panel=RESOURCES,
    ),
]


class Task(Protocol):
    """What is done with the reads, and how it is told; cli/mapping.py and cli/exact.py have one each."""

    @property
    def structure(self) -> Structure:
        """What of the index is searched."""

    @property
    def prefix_table(self) -> bool:
        """Whether its tables of first bases are."""

    @property
    def keeps_tags(self) -> bool:
        """Whether tags of the reads are written."""

    def header(self, contigs: Sequence[Contig], command_line: str, lines: Sequence[str]) -> bytes:
        """What is written in front of the lines; lines: of the header, that are added."""

    def start(self, index: DeviceIndex, backend: Backend, comments: bool) -> stream.Work:
        """The work on batches of reads; comments: whether theirs are tags to write."""

    def progress(self) -> str:
        """What came of the reads so far."""

    def lines(self, backend: Backend) -> list[str]:
        """The summary in words."""

    def record(self) -> dict[str, Any]:
        """The summary for programs."""


def search(
    context: typer.Context,
    reads: Reads,
    interleaved: Interleaved = False,
    index: IndexName = None,
    output: OutputName = None,
    sort: Sort = False,
    sort_memory: SortMemory = None,
    read_group: ReadGroupLine = None,
    header: HeaderLines = None,
    comments: Comments = False,
    keep_tags: KeepTags = None,
    replace_rg: ReplaceReadGroup = False,
    exact: Exact = False,
    strand: StrandName = Strand.BOTH,
    named_format: FormatName = None,
    max_hits: MaxHits = None,
    count_only: CountOnly = False,
    structure: StructureName = None,
    no_prefix_table: NoPrefixTable = False,
    match: Match = 1,
    mismatch: Mismatch = None,
    gap_open: GapOpen = None,
    gap_extend: GapExtend = None,
    clip: Clip = None,
    min_score: MinScore = None,
    device: Device = "auto",
    threads: Threads = None,
    gpu_memory: GpuMemory = None,
    batch_reads: BatchReads = None,
    quiet: Quiet = False,
    json: Json = None,
    debug: Debug = False,
) -> None:
    """Map single-end reads and write SAM, or find all their exact occurrences (--exact).

    The output is in the order of the reads, unless --sort is given; it is the same on every device and with any number
    of threads.

    Also called: readmap map
    """
    refuse_conflicts(context)
    written = format_of(named_format, count_only, output)
    scores = scaled(
        match, mismatch=mismatch, gap_open=gap_open, gap_extend=gap_extend, clip_penalty=clip, min_score=min_score
    )
    group = parse_read_group(read_group) if read_group is not None else NO_READ_GROUP
    lines = [line for option in header or () for line in parse_header_lines(option)]
    additions = Additions(lines, comments, keep_tags, group != NO_READ_GROUP, replace_rg)
    memory = parse_size("--gpu-memory", gpu_memory) if gpu_memory is not None else None
    sorts_in = memory_to_sort(sort, sort_memory, output, exact)
    check_reads(reads, index is not None)
    layout = layout_of(reads, interleaved, exact)
    check_output(output, reads)
    refuse_same_output(json, output)
    path = folder.find(index)
    opened = Index.open(path)
    task: Task = MappingTask(scores, Form.BINARY if written is Format.BAM else Form.TEXT, group)
    if exact:
        task = exact_task(opened, written, group, strand, structure, max_hits, not no_prefix_table)
    with (
        Report(context.obj, quiet, json) as report,
        open_sink(output, opened.reference, threads or available_processors(), sorts_in) as out,
    ):
        if is_older_than_source(path, index):
            report.say(f"warning: {index} is newer than {path}: readmap index --force {index} makes it anew")
        if alternates := alternates_beside(path, opened.source):
            report.say(f"warning: {alternates} names alternate contigs, which are mapped to as all others are")
        backend = open_backend(device, threads, memory)
        on_terminal = output in STANDARD_OUTPUT and sys.stdout is not None and sys.stdout.isatty()
        summary, loading = _run(
            task, reads, layout, additions, out, path, opened, backend, batch_reads, report, on_terminal
        )
        out.commit()
        for line in [*(task.lines(backend) if summary.reads else ["no reads"]), report.cost()]:
            report.say(line)
        files = {"index": printable(str(path)), "reads": [*map(printable, reads)], "output": printable(out.name)}
        report.finish(files | _record(summary, opened, backend, loading) | task.record())


def _run(
    task: Task,
    reads: Sequence[str],
    layout: Layout,
    additions: Additions,
    out: ByteSink,
    path: Path,
    index: Index,
    backend: Backend,
    batch_reads: int | None,
    report: Report,
    shares_terminal: bool,
) -> tuple[stream.Summary, float]:
    """The summary, and the seconds that it took to place the index on the device. path: the index's, for errors."""
    with report.progress(shares_terminal) as show:
        backend.prepare(kernel_types(index.suffixes), report.say)
        show("loading the index")
        began = report.seconds
        try:
            needed = index.searched(task.structure, task.prefix_table).nbytes
        except IndexFolderError as error:
            raise IndexFolderError(f"{path}: {error}") from error
        _say_memory(needed, backend, report)
        placed = index.place(backend, task.structure, task.prefix_table)
        loading = report.seconds - began
        with open_all(reads, additions, task.keeps_tags, backend.threads) as inputs:
            out.write(task.header(index.reference.contigs, report.command_line, inputs.header))
            work = task.start(placed, backend, inputs.comments)
            summary = work.summary

            def progress() -> None:
                show(f"{summary.reads:,} reads, {rate(summary):,.0f} a second, {task.progress()}")

            stream.run(inputs.sources, [out], work, backend, layout=layout, batch_reads=batch_reads, progress=progress)
    return summary, loading


def _say_memory(needed: int, backend: Backend, report: Report) -> None:
    """Tell what a device's memory has to hold, where the device has its own; needed: by the index."""
    memory = backend.memory()
    if memory is not None:
        free, total = memory
        batch = stream.fitting_chunk(backend) * stream.WORKING_BYTES
        report.say(
            f"{backend.name} needs {in_bytes(needed)} of its memory for the index and up to {in_bytes(batch)} "
            f"for a batch of reads; {in_bytes(free)} of {in_bytes(total)} are free"
        )


def _record(summary: stream.Summary, index: Index, backend: Backend, loading: float) -> dict[str, Any]:
    """What the records of all searches hold."""
    reference = index.reference
    return {
        "device": backend.name,
        "threads": backend.threads,
        "reference": {
            "source": printable(index.source),
            "contigs": len(reference.contigs),
            "bases": reference.bases,
            "checksum": reference_checksum(reference.contigs),
        },
        "reads_per_second": round(rate(summary), 1),
        "seconds": {
            "load_index": round(loading, 4),
            "search": round(summary.seconds, 4),
            **{f"waiting_{what}": round(seconds, 4) for what, seconds in summary.waiting.items()},
        },
    }
