"""What markdup and merge share: sorted BAM whose duplicates are marked, its metrics and its reports."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from readmap.backend import Backend
from readmap.bam.codecs import BAM_ENDING
from readmap.bam.sorted_output import SortedOutput
from readmap.cli.common.conflicts import refuse, spelling_options
from readmap.cli.common.duplicates import DuplicateOptions
from readmap.cli.common.options import option, parse_size, size
from readmap.cli.common.quality import QualityOptions
from readmap.cli.common.report import Report, ReportOptions, Show
from readmap.cli.common.resources import Resources
from readmap.duplicates.files import open_marked
from readmap.duplicates.marker import DuplicateMarker
from readmap.errors import UsageError
from readmap.formats.output import ByteSink, open_output
from readmap.formats.path_checks import refuse_inputs, refuse_same_outputs
from readmap.formats.wording import printable
from readmap.qc.survey import Survey
from readmap.reads.alignment_reads import AlignmentReads
from readmap.run.file_checks import check_report_paths
from readmap.run.reports import describe_duplicates, duplicates_as_json, open_reports


@dataclass(frozen=True, kw_only=True)
class MarkingOptions:
    """The output of marked records, and what of it is told."""

    path: str = option(
        "-o --output", "The output: BAM, sorted by coordinate, with its index beside it.", "FILE", default=...
    )
    duplicates: DuplicateOptions
    quality: QualityOptions
    sort_memory: str | None = size(
        "--sort-memory",
        "Memory to sort in, as 8G or 500M (default: a quarter of what is available, and of a GPU what it has left); "
        "more goes to $TMPDIR, else beside the output.",
    )
    resources: Resources
    report: ReportOptions


def refuse_conflicts(context: typer.Context, options: MarkingOptions, inputs: Sequence[str], noun: str) -> None:
    """Raise UsageError where options contradict each other; inputs, noun: files that are read, and what they are."""
    metrics, page, record = options.duplicates.metrics, options.quality.report, options.report.json
    with spelling_options(context, {}):
        check_report_paths(page, options.quality.multiqc)
    if not options.path.endswith(BAM_ENDING):
        raise UsageError(f"-o {options.path}: expected a name that ends with {BAM_ENDING}")
    removed = "not with --remove-duplicates, which leaves no duplicates to tell of"
    refuse(context, [(["duplicate_type"], options.duplicates.remove_duplicates, removed)])
    outputs = {"-o": options.path, "--metrics": metrics, "--report": page, "--json": record}
    refuse_inputs(outputs, inputs, noun)
    refuse_same_outputs(outputs, {"--metrics": "the metrics go", "--report": "the page goes"})


@dataclass(frozen=True)
class Marked:
    """What was written: how many records, their duplicates, and the lines that tell of them."""

    records: int
    duplicates: DuplicateMarker
    lines: list[str]


#: Gives all records to an output, and their fragments to those whose duplicates it marks; how many records.
Fill = Callable[[SortedOutput, DuplicateMarker, Backend, Show], int]


def write_marked(
    options: MarkingOptions, reads: AlignmentReads, named: dict[str, Any], fill: Fill, report: Report, backend: Backend
) -> Marked:
    """Write the records that `fill` gives, and the reports about them.

    reads: whose header and contigs the output has. named: the inputs, for the report.
    """
    page, multiqc = options.quality.report, options.quality.multiqc
    duplicates, survey = (
        DuplicateMarker(options.duplicates.rules(), backend),
        Survey(backend) if page is not None or multiqc is not None else None,
    )
    with contextlib.ExitStack() as stack:
        memory = parse_size("--sort-memory", options.sort_memory)
        reports = stack.enter_context(open_reports(page, multiqc, survey))
        to_mark = reads, memory, duplicates, backend, report.command_line, survey
        sink = stack.enter_context(open_marked(options.path, *to_mark))
        outputs: list[ByteSink] = [sink]
        if options.duplicates.metrics is not None:
            outputs.append(stack.enter_context(open_output(options.duplicates.metrics)))
        with report.progress() as show:
            backend.compile_missing(
                (), ["bam", "common", "duplicates", "reads", *(["qc"] if survey else [])], report.say
            )
            with backend.thread_stream():
                records = fill(sink, duplicates, backend, show)
            show("marking duplicates")
            sink.finish()
        if len(outputs) > 1:
            outputs[1].write(duplicates.metrics(report.command_line).encode())
        reports.write(sink.name, duplicates, report.command_line)
        told: dict[str, Any] = {"device": backend.name, "threads": backend.threads, "records": records}
        told |= duplicates_as_json(duplicates.libraries)
        told |= reports.as_json()
        report.finish(named | {"output": printable(sink.name)} | told, [*outputs, *reports.outputs])
        return Marked(records, duplicates, [*describe_duplicates(duplicates.libraries), *reports.describe()])
