"""readmap markdup: duplicates of alignments that another program made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import typer

from readmap.backend import Backend
from readmap.backend.cpu import CpuBackend
from readmap.backend.machine import available_memory
from readmap.bam.device_runs import DeviceRuns
from readmap.bam.file_index import format_for
from readmap.bam.sorted_output import BamIndex, SortedOutput
from readmap.cli.common.conflicts import refuse, refuse_inputs, refuse_same_output
from readmap.cli.common.duplicates import DuplicateOptions, duplicates_for_programs, duplicates_in_words
from readmap.cli.common.options import argument, command, flag, option, parse_size, size
from readmap.cli.common.output import BAM_ENDING, Compression, open_blocks
from readmap.cli.common.report import Report, ReportOptions
from readmap.cli.common.resources import Resources
from readmap.cli.common.wording import printable
from readmap.duplicates.files import are_grouped, mark_file
from readmap.duplicates.fragments import read_groups
from readmap.duplicates.marker import Duplicates
from readmap.errors import UsageError
from readmap.formats.header import sorted_header
from readmap.formats.output import ByteSink, open_output
from readmap.formats.sam import binary_header
from readmap.formats.words import counted
from readmap.reads.alignment_reads import AlignmentReads, open_reads
from readmap.version import __version__

EXAMPLES = """[bold]Examples[/]
  $ readmap markdup mapped.bam -o marked.bam --metrics marked.txt
  $ bwa mem ref.fa r1.fq r2.fq | samtools view -u - | readmap markdup - -o marked.bam
  $ readmap markdup sorted.cram -o kept.bam --remove-duplicates"""

#: Of the memory that is available, the part in which records are sorted; bytes where the system does not say.
SORT_SHARE, SORT_MEMORY = 4, 2 << 30

#: Device memory that a byte of records takes on its way to a run.
WORKING_BYTES = 4

#: Of a duplicate that another program found.
TYPE_TAG = "DT"


@dataclass(frozen=True, kw_only=True)
class Options:
    """All options of readmap markdup."""

    alignments: str = argument(
        "ALIGNMENTS", "BAM or CRAM in any order, with all records of its reads; - is standard input."
    )
    path: str = option(
        "-o --output", "The output: BAM, sorted by coordinate, with its index beside it.", "FILE", default=...
    )
    grouped: bool = flag(
        "--grouped", "The records of a read stand together, as mappers write them, even if the header does not say so."
    )
    duplicates: DuplicateOptions
    sort_memory: str | None = size(
        "--sort-memory",
        "Memory to sort in, as 8G or 500M (default: a quarter of what is available); more goes to $TMPDIR, else "
        "beside the output.",
    )
    resources: Resources
    report: ReportOptions


@command
def markdup(context: typer.Context, options: Options) -> None:
    """Mark duplicates as Picard MarkDuplicates does, or leave them out, and sort.

    Where the records of a read stand together (SO:queryname or GO:query in the header, or --grouped) they are taken as
    they come; others are brought together first, in $TMPDIR. Marks of before go.
    """
    _refuse_conflicts(context, options)
    rules, backend = options.duplicates.rules(), options.resources.open_backend()
    duplicates = Duplicates(rules, backend)
    with Report(context.obj, options.report) as report, contextlib.ExitStack() as stack:
        reads = stack.enter_context(_open(options.alignments, options.grouped, backend))
        sink = stack.enter_context(_open_sorted(options, reads.contigs, backend, duplicates))
        outputs: list[ByteSink] = [sink]
        if options.duplicates.metrics is not None:
            outputs.append(stack.enter_context(open_output(options.duplicates.metrics)))
        with report.progress() as show:
            backend.prepare((), report.say)
            duplicates.begin(read_groups(reads.header), [length for _, length in reads.contigs])
            lines = sorted_header(reads.header, __version__, report.command_line, "coordinate")
            text = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
            sink.write(binary_header(text, reads.contigs))
            with backend.own_stream():
                records = mark_file(reads, sink, duplicates, backend, lambda seen: show(f"{seen:,} records"))
            show("marking duplicates")
            sink.finish()
        if len(outputs) > 1:
            outputs[1].write(duplicates.metrics(report.command_line).encode())
        named = {"alignments": printable(options.alignments), "output": printable(sink.name)}
        told = {"device": backend.name, "threads": backend.threads, "records": records}
        report.finish(named | told | duplicates_for_programs(duplicates), outputs)
        if duplicates.lost:
            report.say(
                f"warning: of {counted(duplicates.lost, 'read')} the mate is mapped, but not there, or not beside it: "
                "it cannot be a duplicate"
            )
        for line in [f"{records:,} records", *duplicates_in_words(duplicates), report.cost()]:
            report.say(line)


def _refuse_conflicts(context: typer.Context, options: Options) -> None:
    metrics, record = options.duplicates.metrics, options.report.json
    if not options.path.endswith(BAM_ENDING):
        raise UsageError(f"-o {options.path}: expected a name that ends with {BAM_ENDING}")
    removed = "not with --remove-duplicates, which leaves no duplicates to tell of"
    refuse(context, [(["duplicate_type"], options.duplicates.remove_duplicates, removed)])
    refuse_inputs({"-o": options.path, "--metrics": metrics, "--json": record}, [options.alignments], "alignments")
    refuse_same_output("--metrics", metrics, options.path)
    refuse_same_output("--json", record, options.path)
    if metrics is not None:
        refuse_same_output("--json", record, metrics, "the metrics go")


def _open(path: str, grouped: bool, backend: Backend) -> AlignmentReads:
    """The alignments, those of a fragment together, without the tag that says what duplicates are."""
    if path != "-" and not grouped:
        with _alignments(path, backend.threads, collate=False) as reads:
            grouped = are_grouped(reads.header)
            reads.drop()
    return _alignments(path, backend.threads, collate=not grouped)


def _alignments(path: str, threads: int, collate: bool) -> AlignmentReads:
    reads = open_reads(path, threads, collate, dropped=[TYPE_TAG])
    if not isinstance(reads, AlignmentReads):
        reads.close()
        raise UsageError(f"{path} is no BAM or CRAM")
    return reads


@contextlib.contextmanager
def _open_sorted(
    options: Options, contigs: Sequence[tuple[str, int]], backend: Backend, duplicates: Duplicates
) -> Iterator[SortedOutput]:
    """The output, which sorts on its way."""
    lengths, threads, available = [length for _, length in contigs], backend.threads, available_memory()
    memory = parse_size("--sort-memory", options.sort_memory)
    memory = memory or (SORT_MEMORY if available is None else available // SORT_SHARE)
    with contextlib.ExitStack() as opened:
        bam = opened.enter_context(open_blocks(options.path, threads, Compression()))
        index = BamIndex(lengths, format_for(max(lengths, default=0)), bam)
        held = None
        if backend.memory() is not None:
            held = DeviceRuns(backend, len(contigs), memory, WORKING_BYTES * backend.chunk_bytes)
        sorted_ = SortedOutput(bam, memory, index, CpuBackend(threads), bam.buffer, held, duplicates)
        opened.pop_all()
    with sorted_:
        yield sorted_
