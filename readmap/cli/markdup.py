"""readmap markdup: duplicates of alignments that another program made."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import typer

from readmap.cli.common.conflicts import refuse, refuse_inputs, refuse_same_outputs
from readmap.cli.common.duplicates import DuplicateOptions, duplicates_for_programs, duplicates_in_words
from readmap.cli.common.options import argument, command, flag, option, parse_size, size
from readmap.cli.common.output import BAM_ENDING
from readmap.cli.common.quality import QualityOptions, open_quality
from readmap.cli.common.report import Report, ReportOptions
from readmap.cli.common.resources import Resources
from readmap.cli.common.wording import printable
from readmap.duplicates.files import mark_file, open_alignments, open_marked
from readmap.duplicates.marker import Duplicates
from readmap.errors import UsageError
from readmap.formats.output import ByteSink, open_output
from readmap.formats.words import counted
from readmap.reads.alignment_reads import AlignmentReads

EXAMPLES = """[bold]Examples[/]
  $ readmap markdup mapped.bam -o marked.bam --metrics marked.txt
  $ bwa mem ref.fa r1.fq r2.fq | samtools view -u - | readmap markdup - -o marked.bam
  $ readmap markdup sorted.cram -o kept.bam --remove-duplicates"""


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
    quality: QualityOptions
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
    duplicates, survey = Duplicates(rules, backend), options.quality.survey(backend)
    with Report(context.obj, options.report) as report, contextlib.ExitStack() as stack:
        reads = stack.enter_context(open_alignments(options.alignments, options.grouped, backend.threads))
        memory = parse_size("--sort-memory", options.sort_memory)
        quality = stack.enter_context(open_quality(options.quality, survey))
        to_mark = reads, memory, duplicates, backend, report.command_line, survey
        sink = stack.enter_context(open_marked(options.path, *to_mark))
        outputs: list[ByteSink] = [sink]
        if options.duplicates.metrics is not None:
            outputs.append(stack.enter_context(open_output(options.duplicates.metrics)))
        with report.progress() as show:
            backend.prepare((), ["bam", "common", "duplicates", "reads", *(["qc"] if survey else [])], report.say)
            with backend.own_stream():
                records = mark_file(
                    reads, sink, duplicates, backend, lambda seen: show(f"{seen:,} records", _share(reads))
                )
            show("marking duplicates")
            sink.finish()
        if len(outputs) > 1:
            outputs[1].write(duplicates.metrics(report.command_line).encode())
        named = {"alignments": printable(options.alignments), "output": printable(sink.name)}
        told: dict[str, Any] = {"device": backend.name, "threads": backend.threads, "records": records}
        told |= duplicates_for_programs(duplicates.libraries) | quality.write(
            sink.name, duplicates, report.command_line
        )
        report.finish(named | told, [*outputs, *quality.outputs])
        if lost := duplicates.table.lost:
            report.say(
                f"warning: of {counted(lost, 'read')} the mate is mapped, but not there, or not beside it: "
                "it cannot be a duplicate"
            )
        for line in [
            f"{records:,} records",
            *duplicates_in_words(duplicates.libraries),
            *quality.lines(),
            report.cost(),
        ]:
            report.say(line)


def _share(reads: AlignmentReads) -> float | None:
    """The part of the file that has been read."""
    taken = reads.taken()
    return taken[0] / taken[1] if taken and taken[1] else None


def _refuse_conflicts(context: typer.Context, options: Options) -> None:
    metrics, page, record = options.duplicates.metrics, options.quality.page, options.report.json
    options.quality.check()
    if not options.path.endswith(BAM_ENDING):
        raise UsageError(f"-o {options.path}: expected a name that ends with {BAM_ENDING}")
    removed = "not with --remove-duplicates, which leaves no duplicates to tell of"
    refuse(context, [(["duplicate_type"], options.duplicates.remove_duplicates, removed)])
    outputs = {"-o": options.path, "--metrics": metrics, "--report": page, "--json": record}
    refuse_inputs(outputs, [options.alignments], "alignments")
    refuse_same_outputs(outputs, {"--metrics": "the metrics go", "--report": "the page goes"})
