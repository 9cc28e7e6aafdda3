"""readmap search: reads to SAM, or to tables of exact occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from readmap.backend import Backend, open_backend
from readmap.backend.cpu import available_processors
from readmap.cli.conflicts import refuse_conflicts
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
)
from readmap.cli.inputs import alternates_beside, check_outputs, check_reads, is_older_than_source, layout_of
from readmap.cli.mapping import MappingTask
from readmap.cli.options import Debug, Json, Quiet, Threads, parse_size
from readmap.cli.output import (
    HeaderLines,
    OutputName,
    ReadGroupLine,
    Sort,
    SortMemory,
    UnmappedName,
    check_unmapped,
    memory_to_sort,
    open_outputs,
)
from readmap.cli.pairing import InsertSizeText, Interleaved, NoPairing, NoRescue, pairing_of, refuse_for_single
from readmap.cli.reads import Additions, Comments, KeepTags, OpenReads, ReplaceReadGroup, open_all
from readmap.cli.report import Report, is_terminal, printable, rate, reference_checksum
from readmap.cli.reporting import (
    AllPlaces,
    LeftmostPrimary,
    MarkSecondary,
    MaxAlternatives,
    MaxSecondary,
    SoftClip,
    reporting_of,
)
from readmap.cli.resources import BatchReads, Device, GpuMemory, say_memory
from readmap.cli.scoring import Clip, GapExtend, GapOpen, LongGap, Match, MinScore, Mismatch, Unpaired, scaled
from readmap.cli.task import Task
from readmap.errors import IndexFolderError
from readmap.formats.header import parse_header_lines, program_name
from readmap.formats.output import ByteSink, commit_together
from readmap.formats.sam import NO_READ_GROUP, Form, parse_read_group
from readmap.index import folder
from readmap.index.index import Index
from readmap.index.suffix_array import kernel_types
from readmap.search import stream
from readmap.search.exact import Format
from readmap.search.records import Style
from readmap.strand import Strand

EXAMPLES = r"""[bold]Examples[/]
  $ readmap search reads.fq.gz -x ref.fa -o out.sam
  $ readmap search r1.fq.gz r2.fq.gz -x ref.fa -o sorted.bam --sort
  $ cat *.fq.gz | readmap search - --interleaved -x ref.fa -o out.cram
  $ readmap search reads.fq -x ref.fa -R '@RG\tID:run1\tSM:sample' -o out.sam
  $ readmap search unaligned.bam -x ref.fa -o out.bam --keep-tags RX
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


def search(
    context: typer.Context,
    reads: Reads,
    interleaved: Interleaved = False,
    insert_size: InsertSizeText = None,
    no_pairing: NoPairing = False,
    no_rescue: NoRescue = False,
    index: IndexName = None,
    output: OutputName = None,
    sort: Sort = False,
    sort_memory: SortMemory = None,
    unmapped: UnmappedName = None,
    read_group: ReadGroupLine = None,
    header: HeaderLines = None,
    all_places: AllPlaces = False,
    max_secondary: MaxSecondary = None,
    max_alternatives: MaxAlternatives = None,
    soft_clip: SoftClip = False,
    mark_secondary: MarkSecondary = False,
    leftmost_primary: LeftmostPrimary = False,
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
    long_gap: LongGap = None,
    clip: Clip = None,
    unpaired: Unpaired = None,
    min_score: MinScore = None,
    device: Device = "auto",
    threads: Threads = None,
    gpu_memory: GpuMemory = None,
    batch_reads: BatchReads = None,
    quiet: Quiet = False,
    json: Json = None,
    debug: Debug = False,
) -> None:
    """Map reads or pairs of reads and write SAM, BAM or CRAM, or find all their exact occurrences (--exact).

    The output is in the order of the reads (but for --sort), the same on every device and for any number of threads.

    Also called: readmap map
    """
    refuse_conflicts(context)
    written = format_of(named_format, count_only, output)
    scores = scaled(
        match,
        mismatch=mismatch,
        gap_open=gap_open,
        gap_extend=gap_extend,
        long_gap=long_gap,
        clip_penalty=clip,
        unpaired_penalty=unpaired,
        min_score=min_score,
    )
    pairing = pairing_of(insert_size, no_pairing, no_rescue)
    reporting = reporting_of(all_places, max_secondary, max_alternatives, soft_clip, mark_secondary, leftmost_primary)
    group = parse_read_group(read_group) if read_group is not None else NO_READ_GROUP
    lines = [line for option in header or () for line in parse_header_lines(option)]
    additions = Additions(lines, comments, keep_tags, group != NO_READ_GROUP, replace_rg)
    memory = parse_size("--gpu-memory", gpu_memory) if gpu_memory is not None else None
    sorts_in = memory_to_sort(sort, sort_memory, output, exact)
    check_reads(reads, index is not None)
    layout = layout_of(reads, interleaved, exact)
    check_unmapped(unmapped)
    check_outputs(output, unmapped, json, reads)
    path = folder.find(index)
    opened = Index.open(path)
    workers = threads or available_processors()
    form = Form.BINARY if written is Format.BAM else Form.TEXT
    task: Task = MappingTask(scores, pairing, reporting, Style(form, group, unmapped=unmapped is not None))
    if exact:
        task = exact_task(opened, written, group, strand, structure, max_hits, not no_prefix_table)
    with (
        Report(context.obj, quiet, json) as report,
        open_outputs(output, unmapped, opened.reference, workers, sorts_in) as outputs,
        open_all(reads, layout, additions, task.aligns, workers) as inputs,
    ):
        refuse_for_single(context, inputs.layout)
        if is_older_than_source(path, index):
            report.say(f"warning: {index} is newer than {path}: readmap index --force {index} makes it anew")
        if alternates := alternates_beside(path, opened.source):
            report.say(f"warning: {alternates} names alternate contigs, which are mapped to as all others are")
        backend = open_backend(device, threads, memory)
        shares_terminal = is_terminal(output) or (unmapped is not None and is_terminal(unmapped))
        summary, loading = _run(task, inputs, outputs, path, opened, backend, batch_reads, report, shares_terminal)
        commit_together(outputs)
        for line in [*(task.lines(backend) if summary.reads else ["no reads"]), report.cost()]:
            report.say(line)
        files = {"index": printable(str(path)), "reads": [*map(printable, reads)]}
        files |= {name: printable(out.name) for name, out in zip(("output", "unmapped"), outputs, strict=False)}
        report.finish(files | _record(summary, opened, backend, loading) | task.record())


def _run(
    task: Task,
    inputs: OpenReads,
    outputs: Sequence[ByteSink],
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
        say_memory(needed, backend, report)
        placed = index.place(backend, task.structure, task.prefix_table)
        loading = report.seconds - began
        outputs[0].write(task.header(index.reference.contigs, report.command_line, inputs.header))
        work = task.start(placed, backend, program_name(inputs.header), inputs.comments)
        summary = work.summary

        def progress() -> None:
            show(f"{summary.reads:,} reads, {rate(summary):,.0f} a second, {task.progress()}")

        sources, layout = inputs.take(), inputs.layout
        stream.run(sources, outputs, work, backend, layout=layout, batch_reads=batch_reads, progress=progress)
    return summary, loading


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
