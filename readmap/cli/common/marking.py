"""Write sorted BAM with marked duplicates, metrics and reports, for markdup and merge."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import typer

from readmap.backend import Backend
from readmap.bam.codecs import BAM_ENDING
from readmap.bam.sorted_output import SortedOutput
from readmap.cli.common.options import option, option_group, parse_size, refuse_conflicts, spelling_options
from readmap.cli.common.report import Report, ReportOptions, Show
from readmap.cli.common.shared_options import DuplicateOptions, QualityOptions, Resources, sort_memory_option
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


@option_group()
class MarkingOptions:
    """The output of marked records and its reports."""

    path: str = option("-o --output", "Output: BAM in coordinate order, with its index.", "FILE", default=...)
    sort_memory: str | None = sort_memory_option()
    duplicates: DuplicateOptions
    quality: QualityOptions
    resources: Resources
    report: ReportOptions


def check_marking(context: typer.Context, options: MarkingOptions, inputs: Sequence[str], noun: str) -> None:
    """Raise UsageError if options contradict each other; inputs, noun: paths of the input files, and what they are."""
    metrics, page, json = options.duplicates.metrics, options.quality.report, options.report.json
    with spelling_options(context, {}):
        check_report_paths(page, options.quality.multiqc)
    if not options.path.endswith(BAM_ENDING):
        raise UsageError(f"-o {options.path}: expected a name that ends with {BAM_ENDING}")
    removed = "not with --remove-duplicates: no duplicates are left to tag"
    refuse_conflicts(context, [(["duplicate_type"], options.duplicates.remove_duplicates, removed)])
    outputs = {"-o": options.path, "--metrics": metrics, "--report": page, "--json": json}
    refuse_inputs(outputs, inputs, noun)
    refuse_same_outputs(outputs, {"--metrics": "the metrics go", "--report": "the page goes"})


#: Adds all records to an output and their fragments to a marker; returns the number of records.
Fill = Callable[[SortedOutput, DuplicateMarker, Backend, Show], int]


def write_marked(
    options: MarkingOptions, reads: AlignmentReads, inputs: dict[str, Any], fill: Fill, report: Report, backend: Backend
) -> tuple[int, DuplicateMarker, list[str]]:
    """Write the records that `fill` adds as sorted BAM with marked duplicates, write all reports, and commit them.

    reads: have the header and the contigs of the output. inputs: paths of the inputs, for the JSON report.
    Returns the number of records, the marker with all duplicates, and lines of text about them.
    """
    page, multiqc = options.quality.report, options.quality.multiqc
    duplicates = DuplicateMarker(options.duplicates.rules(), backend)
    survey = Survey(backend) if page is not None or multiqc is not None else None
    with contextlib.ExitStack() as stack:
        memory = parse_size("--sort-memory", options.sort_memory)
        reports = stack.enter_context(open_reports(page, multiqc, survey))
        to_mark = reads, memory, duplicates, backend, report.command_line, survey
        sink = stack.enter_context(open_marked(options.path, *to_mark))
        outputs: list[ByteSink] = [sink]
        if options.duplicates.metrics is not None:
            outputs.append(stack.enter_context(open_output(options.duplicates.metrics)))
        with report.progress() as show:
            rooms = ["bam", "common", "duplicates", "reads", *(["qc"] if survey else [])]
            backend.compile_missing((), rooms, report.say)
            with backend.thread_stream():
                records = fill(sink, duplicates, backend, show)
            sink.finish(show)
        if len(outputs) > 1:
            outputs[1].write(duplicates.metrics(report.command_line).encode())
        reports.write(sink.name, duplicates, report.command_line)
        found: dict[str, Any] = {"device": backend.name, "threads": backend.threads, "records": records}
        found |= duplicates_as_json(duplicates.libraries)
        found |= reports.as_json()
        report.finish(inputs | {"output": printable(sink.name)} | found, [*outputs, *reports.outputs])
        return records, duplicates, [*describe_duplicates(duplicates.libraries), *reports.describe()]
