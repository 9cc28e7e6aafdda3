"""readmap merge: merge the sorted shards of a run and mark the duplicates among all of them."""

import contextlib

import typer

from readmap.backend import Backend
from readmap.bam.sorted_output import SortedOutput
from readmap.cli.common.marking import MarkingOptions, check_marking, write_marked
from readmap.cli.common.options import argument, command, option_group
from readmap.cli.common.report import Report, Show
from readmap.duplicates.files import open_alignments
from readmap.duplicates.marker import DuplicateMarker
from readmap.duplicates.shards import FRAGMENTS_SUFFIX, merge_shard, verify_shards
from readmap.errors import UsageError
from readmap.formats.wording import pluralize, printable

EXAMPLES = """[bold]Examples[/]
  $ readmap search r1.fq.gz r2.fq.gz -x ref.fa --sample-model model.json --split reads.split --shard 1/2 \\
      --sort --for-merge -o 1.bam
  $ readmap merge 1.bam 2.bam -o marked.bam --metrics marked.txt --report marked.html"""


@option_group()
class MergeOptions(MarkingOptions):
    """All options of readmap merge."""

    shards: list[str] = argument(
        "SHARDS", f"Output of readmap search --for-merge in shard order, with each FILE{FRAGMENTS_SUFFIX}."
    )


@command
def merge(context: typer.Context, options: MergeOptions) -> None:
    """Merge sorted shards of a run, and mark or remove the duplicates among all of them.

    Records, metrics and report are identical to one readmap search --sort --markdup of all reads.
    """
    shards = options.shards
    check_marking(context, options, [*shards, *(path + FRAGMENTS_SUFFIX for path in shards)], "shards")
    if repeated := next((path for i, path in enumerate(shards) if path in shards[:i]), None):
        raise UsageError(f"{repeated} is given twice")
    barcode_tag, backend = options.duplicates.rules().barcode_tag, options.resources.open_backend()
    with Report(context.obj, options.report) as report, contextlib.ExitStack() as stack:
        opened = [stack.enter_context(open_alignments(path, True, backend.threads)) for path in shards]
        verify_shards(shards, [reads.header for reads in opened], barcode_tag)

        def fill(output: SortedOutput, duplicates: DuplicateMarker, backend: Backend, show: Show) -> int:
            records = 0

            def progress(seen: int) -> None:
                show(f"{records + seen:,} records")

            for path, reads in zip(shards, opened, strict=True):
                records += merge_shard(path, reads, output, duplicates, backend, progress)
            return records

        inputs = {"shards": [*map(printable, shards)]}
        count, _, lines = write_marked(options, opened[0], inputs, fill, report, backend)
        for line in [f"{count:,} records of {pluralize(len(shards), 'shard')}", *lines, report.cost()]:
            report.say(line)
