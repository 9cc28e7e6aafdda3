"""readmap merge: sorted shards of one run to one file, with its duplicates marked."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import typer

from readmap.cli.common.conflicts import refuse, refuse_inputs, refuse_same_outputs
from readmap.cli.common.duplicates import DuplicateOptions, duplicates_for_programs, duplicates_in_words
from readmap.cli.common.options import argument, command, option, parse_size, size
from readmap.cli.common.output import BAM_ENDING
from readmap.cli.common.quality import QualityOptions, open_quality
from readmap.cli.common.report import Report, ReportOptions
from readmap.cli.common.resources import Resources
from readmap.cli.common.wording import printable
from readmap.duplicates.files import open_alignments, open_marked
from readmap.duplicates.marker import Duplicates
from readmap.duplicates.shards import ENDING, expect_one_run, merge_shard, read_fragments
from readmap.errors import UsageError
from readmap.formats.output import ByteSink, open_output
from readmap.formats.words import counted

EXAMPLES = """[bold]Examples[/]
  $ readmap search r1.fq.gz r2.fq.gz -x ref.fa --learnt learnt.json --split reads.split --shard 1/2 \\
      --sort --for-merge -o 1.bam
  $ readmap merge 1.bam 2.bam -o marked.bam --metrics marked.txt --report marked.html"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """All options of readmap merge."""

    shards: list[str] = argument(  # noqa: RUF009
        "SHARDS", f"BAM of readmap search --sort --for-merge, in the order of the shards; FILE{ENDING} beside each."
    )
    path: str = option(
        "-o --output", "The output: BAM, sorted by coordinate, with its index beside it.", "FILE", default=...
    )
    duplicates: DuplicateOptions
    quality: QualityOptions
    sort_memory: str | None = size(
        "--sort-memory",
        "Memory to merge in, as 8G or 500M (default: a quarter of what is available); more goes to $TMPDIR, else "
        "beside the output.",
    )
    resources: Resources
    report: ReportOptions


@command
def merge(context: typer.Context, options: Options) -> None:
    """Merge sorted shards of a run, and mark the duplicates among all of them, or leave these out.

    The records, the metrics and the report are those of one readmap search --sort --markdup of all reads.
    """
    _refuse_conflicts(context, options)
    shards = [read_fragments(path) for path in options.shards]
    rules, backend = options.duplicates.rules(), options.resources.open_backend()
    if rules.barcode_tag != shards[0].barcode_tag:
        found = shards[0].barcode_tag or "none"
        raise UsageError(f"--barcode-tag {rules.barcode_tag or 'is not given'}: the shards were searched with {found}")
    duplicates, survey = Duplicates(rules, backend), options.quality.survey(backend)
    with Report(context.obj, options.report) as report, contextlib.ExitStack() as stack:
        opened = [stack.enter_context(open_alignments(path, True, backend.threads)) for path in options.shards]
        expect_one_run(shards, [reads.header for reads in opened])
        memory = parse_size("--sort-memory", options.sort_memory)
        quality = stack.enter_context(open_quality(options.quality, survey))
        to_mark = opened[0], memory, duplicates, backend, report.command_line, survey
        sink = stack.enter_context(open_marked(options.path, *to_mark))
        outputs: list[ByteSink] = [sink]
        if options.duplicates.metrics is not None:
            outputs.append(stack.enter_context(open_output(options.duplicates.metrics)))
        with report.progress() as show:
            backend.prepare((), ["bam", "common", "duplicates", "reads", *(["qc"] if survey else [])], report.say)
            records = 0

            def progress(more: int) -> None:
                nonlocal records
                records += more
                show(f"{records:,} records")

            with backend.own_stream():
                for shard, reads in zip(shards, opened, strict=True):
                    merge_shard(reads, shard, sink, duplicates, backend, progress)
            show("marking duplicates")
            sink.finish()
        if len(outputs) > 1:
            outputs[1].write(duplicates.metrics(report.command_line).encode())
        named = {"shards": [*map(printable, options.shards)], "output": printable(sink.name)}
        told: dict[str, Any] = {"device": backend.name, "threads": backend.threads, "records": records}
        told |= duplicates_for_programs(duplicates.libraries) | quality.write(
            sink.name, duplicates, report.command_line
        )
        report.finish(named | told, [*outputs, *quality.outputs])
        merged = f"{records:,} records of {counted(len(shards), 'shard')}"
        for line in [merged, *duplicates_in_words(duplicates.libraries), *quality.lines(), report.cost()]:
            report.say(line)


def _refuse_conflicts(context: typer.Context, options: Options) -> None:
    metrics, page, record = options.duplicates.metrics, options.quality.page, options.report.json
    options.quality.check()
    if not options.path.endswith(BAM_ENDING):
        raise UsageError(f"-o {options.path}: expected a name that ends with {BAM_ENDING}")
    if twice := _first_twice(options.shards):
        raise UsageError(f"{twice} is named twice among the shards")
    removed = "not with --remove-duplicates, which leaves no duplicates to tell of"
    refuse(context, [(["duplicate_type"], options.duplicates.remove_duplicates, removed)])
    outputs = {"-o": options.path, "--metrics": metrics, "--report": page, "--json": record}
    refuse_inputs(outputs, [*options.shards, *(path + ENDING for path in options.shards)], "shards")
    refuse_same_outputs(outputs, {"--metrics": "the metrics go", "--report": "the page goes"})


def _first_twice(paths: Sequence[str]) -> str | None:
    return next((path for at, path in enumerate(paths) if path in paths[:at]), None)
