"""readmap split: write a table of record positions, so that a search can read a part of the files."""

import typer

from readmap.backend.machine import available_processors
from readmap.cli.common.options import argument, command, option, option_group, spelling_options
from readmap.cli.common.report import Report, ReportOptions
from readmap.cli.common.shared_options import threads_option
from readmap.cli.search.options import LaneOptions
from readmap.errors import UsageError
from readmap.formats.output import open_output
from readmap.formats.path_checks import refuse_inputs, refuse_same_outputs
from readmap.formats.wording import format_bytes, pluralize, printable
from readmap.reads.file_splitter import split_files
from readmap.reads.split_table import SplitFile, SplitTable, check_equal_record_counts
from readmap.run.config import SearchConfig
from readmap.run.lanes import Lane, resolve_lanes

EXAMPLES = """[bold]Examples[/]
  $ readmap split r1.fq.gz r2.fq.gz -o reads.split
  $ readmap search r1.fq.gz r2.fq.gz -x ref.fa --split reads.split --shard 1/8 -o shard1.bam
  $ readmap split --sheet lanes.csv --sample s1 -o s1.split"""


@option_group()
class SplitOptions:
    """All options of readmap split."""

    reads: list[str] | None = argument("READS", "FASTQ or FASTA (plain, gzip), one file or two of pairs.", default=None)
    path: str = option("-o --output", "Output: the table.", "TABLE", default=...)
    lanes: LaneOptions
    threads: int | None = threads_option()
    report: ReportOptions


@command
def split(context: typer.Context, options: SplitOptions) -> None:
    """Write a table of the positions of reads, with which readmap search --shard maps a part of them.

    The files are decompressed once and not changed.

    The table contains the position of every 1,024th record, and the state to decompress gzip from there.
    """
    lane_options = options.lanes
    with spelling_options(context, {}):
        reads, named = tuple(options.reads or ()), tuple(lane_options.lanes or ())
        sheet, sample = lane_options.sheet, lane_options.sample
        SearchConfig(reads=reads, lanes=named, sheet=sheet, sample=sample)  # raises UsageError for conflicts
        lanes = resolve_lanes(named, sheet, sample)
        files = [file for lane in lanes for file in lane.files] or [*reads]
        _check_files(options, lanes, files)
    with Report(context.obj, options.report) as report, open_output(options.path) as output:
        warnings: list[str] = []
        with report.progress() as show:

            def progress(records: int, read: int, size: int) -> None:
                show(f"{records:,} records", read / size if size else None)

            found = split_files(files, options.threads or available_processors(), progress, warnings.append)
        _expect_mates(found, files, lanes)
        table = SplitTable(options.path, found).to_bytes()
        output.write(table)
        contents = [
            {"name": printable(each.name), "records": each.records, "text_bytes": each.text_bytes} for each in found
        ]
        report.finish({"output": printable(output.name), "bytes": len(table), "files": contents}, [output])
        for warning in warnings:
            report.say(f"warning: {warning}")
        for each in found:
            size = format_bytes(each.text_bytes)
            report.say(f"{printable(each.name)}: {pluralize(each.records, 'record')}, {size} of text")
        report.say(f"the table has {format_bytes(len(table))}; {report.cost()}")


def _expect_mates(found: tuple[SplitFile, ...], files: list[str], lanes: list[Lane]) -> None:
    """Raise DataError if the two files of a lane differ in the number of records."""
    start = 0
    for count in [len(lane.files) for lane in lanes] or [len(files)]:
        if count == 2:
            check_equal_record_counts(files[start : start + 2], found[start : start + 2])
        start += count


def _check_files(options: SplitOptions, lanes: list[Lane], files: list[str]) -> None:
    """Raise UsageError if there are no files of reads, too many without lanes, or an output would replace one."""
    if not files:
        raise UsageError("no reads: give files, --lane or --sheet (readmap split --help shows the options)")
    if "-" in files:
        raise UsageError("-: standard input cannot be split: give files")
    if not lanes and len(files) > 2:
        raise UsageError(f"{len(files)} files of reads, expected one, or two of pairs: give each lane with --lane")
    outputs = {"-o": options.path, "--json": options.report.json}
    refuse_inputs(outputs, files, "reads")
    refuse_same_outputs(outputs, {})
