"""readmap search: reads to SAM."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from readmap import __version__
from readmap.backend import Backend, open_backend
from readmap.cli.inputs import check_output, check_reads, is_older_than_source
from readmap.cli.options import RESOURCES, Debug, Json, Quiet, Threads, in_range, parse_size
from readmap.cli.report import STANDARD_OUTPUT, Report, in_bytes, printable, reference_checksum, refuse_same_output
from readmap.cli.scoring import Clip, GapExtend, GapOpen, Match, MinScore, Mismatch, scaled
from readmap.formats.output import Output, open_output
from readmap.formats.sam import header, parse_read_group
from readmap.index import folder
from readmap.index.device import place
from readmap.index.index import Index
from readmap.index.suffix_array import kernel_types
from readmap.search import stream
from readmap.search.mapping import Mapping, Summary
from readmap.search.parameters import Scoring

EXAMPLES = r"""[bold]Examples[/]
  $ readmap search reads.fq.gz -x ref.fa -o out.sam
  $ cat *.fq.gz | readmap search - -x ref.fa | samtools sort -o out.bam
  $ readmap search reads.fq -x ref.fa -R '@RG\tID:run1\tSM:sample' -o out.sam"""

#: The first MAPQ of each bin of the summary's histogram.
BINS = (0, 1, 10, 20, 30, 40, 50, 60)

Reads = Annotated[
    list[str],
    typer.Argument(
        metavar="READS",
        help="FASTQ or FASTA of reads up to 10,000 bases: plain, gzip or bgzip; - is standard input.",
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
OutputName = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="The SAM file (default: standard output).", show_default=False),
]
ReadGroup = Annotated[
    str | None,
    typer.Option(
        "-R",
        "--read-group",
        metavar="LINE",
        help=r"The read group of all reads, as '@RG\tID:a\tSM:b'.",
        show_default=False,
    ),
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="NAME",
        help="cpu, cuda, cuda:N, or auto: a GPU where there is one.",
        rich_help_panel=RESOURCES,
    ),
]
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
        help="Most reads to map together (default: by their bytes). SAM is the same for any.",
        show_default=False,
        rich_help_panel=RESOURCES,
    ),
]


def search(
    context: typer.Context,
    reads: Reads,
    index: IndexName = None,
    output: OutputName = None,
    read_group: ReadGroup = None,
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
    """Map single-end reads and write SAM: one record a read, in the order of the reads.

    The SAM is the same on every device and with any number of threads. Also called: readmap map
    """
    scoring = scaled(
        match,
        mismatch=mismatch,
        gap_open=gap_open,
        gap_extend=gap_extend,
        clip_penalty=clip,
        min_score=min_score,
    )
    group = parse_read_group(read_group) if read_group is not None else (b"", b"")
    memory = parse_size("--gpu-memory", gpu_memory) if gpu_memory is not None else None
    check_reads(reads, index is not None)
    check_output(output, reads[0])
    refuse_same_output(json, output)
    path = folder.find(index)
    opened = Index.open(path)
    with Report(context.obj, quiet, json) as report, open_output(output) as sam:
        if is_older_than_source(path, index):
            report.say(f"warning: {index} is newer than {path}: readmap index --force {index} makes it anew")
        backend = open_backend(device, threads, memory)
        on_terminal = output in STANDARD_OUTPUT and sys.stdout is not None and sys.stdout.isatty()
        summary, loading = _map(reads, sam, opened, backend, scoring, group, batch_reads, report, on_terminal)
        sam.commit()
        for line in [*_lines(summary, backend, scoring), report.cost()]:
            report.say(line)
        files = {"index": printable(str(path)), "reads": [*map(printable, reads)], "output": printable(sam.name)}
        report.finish(files | _record(summary, opened, backend, scoring, loading))


def _map(
    reads: Sequence[str],
    sam: Output,
    index: Index,
    backend: Backend,
    scoring: Scoring,
    group: tuple[bytes, bytes],
    batch_reads: int | None,
    report: Report,
    shares_terminal: bool,
) -> tuple[Summary, float]:
    """The summary, and the seconds that it took to place the index on the device. group: header line and tag."""
    with report.progress(shares_terminal) as show:
        backend.prepare(kernel_types(index.suffixes), report.say)
        show("loading the index")
        began = report.seconds
        _say_memory(index, backend, report)
        placed = place(index, backend)
        loading = report.seconds - began
        sam.write(header(index.reference.contigs, __version__, report.command_line, group[0]))
        mapping = Mapping(placed, scoring, backend, group[1])
        counted = mapping.summary
        stream.run(reads, sam, mapping, backend, batch_reads=batch_reads, progress=lambda: show(_progress(counted)))
    return counted, loading


def _say_memory(index: Index, backend: Backend, report: Report) -> None:
    """Tell what a device's memory has to hold, where the device has its own."""
    memory = backend.memory()
    if memory is not None:
        free, total = memory
        batch = stream.fitting_chunk(backend) * stream.WORKING_BYTES
        report.say(
            f"{backend.name} needs {in_bytes(index.nbytes)} of its memory for the index and up to {in_bytes(batch)} "
            f"for a batch of reads; {in_bytes(free)} of {in_bytes(total)} are free"
        )


def _progress(summary: Summary) -> str:
    rate = summary.reads / max(summary.seconds, 1e-9)
    return f"{summary.reads:,} reads, {rate:,.0f} a second, {_share(summary.mapped, summary.reads)} mapped"


def _share(part: int, whole: int) -> str:
    return f"{part / max(whole, 1):.2%}"


def _bins(summary: Summary) -> dict[str, int]:
    """Mapped reads by bins of MAPQ."""
    ends = [*BINS[1:], BINS[-1] + 1]
    names = [f"{low}-{end - 1}" if end - low > 1 else f"{low}" for low, end in zip(BINS, ends, strict=True)]
    counts = [int(summary.mapqs[low:end].sum()) for low, end in zip(BINS, ends, strict=True)]
    return dict(zip(names, counts, strict=True))


def _lines(summary: Summary, backend: Backend, scoring: Scoring) -> list[str]:
    """The summary in words."""
    rate = summary.reads / max(summary.seconds, 1e-9)
    threads = f" with {backend.threads} threads" if backend.name == "cpu" and backend.threads > 1 else ""
    if not summary.reads:
        return ["no reads"]
    lines = [
        f"{summary.reads:,} reads, {summary.mapped:,} mapped ({_share(summary.mapped, summary.reads)}), "
        f"{rate:,.0f} reads/s on {backend.name}{threads}",
        "MAPQ  " + "  ".join(f"{name}: {count:,}" for name, count in _bins(summary).items()),
    ]
    if summary.too_short:
        lines.append(f"{summary.too_short:,} reads are too short to reach the score {scoring.min_score} (-T)")
    if summary.replaced:
        lines.append(f"{summary.replaced:,} ambiguous letters of the reads are written as N")
    return lines


def _record(summary: Summary, index: Index, backend: Backend, scoring: Scoring, loading: float) -> dict[str, Any]:
    """The summary for programs."""
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
        "scoring": asdict(scoring),
        "counts": {
            "reads": summary.reads,
            "mapped": summary.mapped,
            "unmapped": summary.reads - summary.mapped,
            "too_short": summary.too_short,
            "replaced_letters": summary.replaced,
        },
        "mapq_histogram": summary.mapqs.tolist(),
        "reads_per_second": round(summary.reads / max(summary.seconds, 1e-9), 1),
        "seconds": {
            "load_index": round(loading, 4),
            "search": round(summary.seconds, 4),
            **{f"waiting_{what}": round(seconds, 4) for what, seconds in summary.waiting.items()},
        },
    }
