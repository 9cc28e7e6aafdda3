"""readmap markdup: mark duplicates in existing alignments."""

import typer

from readmap.backend import Backend
from readmap.bam.sorted_output import SortedOutput
from readmap.cli.common.marking import MarkingOptions, check_marking, write_marked
from readmap.cli.common.options import argument, command, flag, option_group
from readmap.cli.common.report import Report, Show
from readmap.duplicates.files import mark_file, open_alignments
from readmap.duplicates.marker import DuplicateMarker
from readmap.formats.wording import pluralize, printable

EXAMPLES = """[bold]Examples[/]
  $ readmap markdup mapped.bam -o marked.bam --metrics marked.txt
  $ bwa mem ref.fa r1.fq r2.fq | samtools view -u - | readmap markdup - -o marked.bam
  $ readmap markdup sorted.cram -o kept.bam --remove-duplicates"""


@option_group()
class MarkdupOptions(MarkingOptions):
    """All options of readmap markdup."""

    alignments: str = argument("ALIGNMENTS", "BAM or CRAM in any order, all records of each read; - is standard input.")
    grouped: bool = flag("--grouped", "The records of each read are next to each other (default: as in the header).")


@command
def markdup(context: typer.Context, options: MarkdupOptions) -> None:
    """Mark duplicates as Picard MarkDuplicates does, or remove them, and sort.

    If the records of each read are next to each other (SO:queryname or GO:query in the header, or --grouped), the input
    is read once; otherwise its records are grouped first, in $TMPDIR. Earlier duplicate marks are removed.
    """
    check_marking(context, options, [options.alignments], "alignments")
    backend = options.resources.open_backend()
    with (
        Report(context.obj, options.report) as report,
        open_alignments(options.alignments, options.grouped, backend.threads) as reads,
    ):

        def fill(output: SortedOutput, duplicates: DuplicateMarker, backend: Backend, show: Show) -> int:
            def progress(seen: int) -> None:
                done, size = reads.read_progress() or (0, 0)
                show(f"{seen:,} records", done / size if size else None)

            return mark_file(reads, output, duplicates, backend, progress)

        inputs = {"alignments": printable(options.alignments)}
        records, duplicates, lines = write_marked(options, reads, inputs, fill, report, backend)
        if lost := duplicates.table.missing_mates:
            report.say(
                f"warning: {pluralize(lost, 'read')} with a mapped mate whose record is missing or not next to it: "
                "cannot be a duplicate"
            )
        for line in [f"{records:,} records", *lines, report.cost()]:
            report.say(line)
