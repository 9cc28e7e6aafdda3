"""readmap markdup: duplicates of alignments that another program made."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from readmap.backend import Backend
from readmap.bam.sorted_output import SortedOutput
from readmap.cli.common.marking import MarkingOptions, refuse_conflicts, write_marked
from readmap.cli.common.options import argument, command, flag
from readmap.cli.common.report import Report, Show
from readmap.duplicates.files import mark_file, open_alignments
from readmap.duplicates.marker import DuplicateMarker
from readmap.formats.wording import pluralize, printable
from readmap.reads.alignment_reads import AlignmentReads

EXAMPLES = """[bold]Examples[/]
  $ readmap markdup mapped.bam -o marked.bam --metrics marked.txt
  $ bwa mem ref.fa r1.fq r2.fq | samtools view -u - | readmap markdup - -o marked.bam
  $ readmap markdup sorted.cram -o kept.bam --remove-duplicates"""


@dataclass(frozen=True, kw_only=True)
class MarkdupOptions(MarkingOptions):
    """All options of readmap markdup."""

    alignments: str = argument(
        "ALIGNMENTS", "BAM or CRAM in any order, with all records of its reads; - is standard input."
    )
    grouped: bool = flag(
        "--grouped", "The records of a read stand together, as mappers write them, even if the header does not say so."
    )


@command
def markdup(context: typer.Context, options: MarkdupOptions) -> None:
    """Mark duplicates as Picard MarkDuplicates does, or leave them out, and sort.

    Where the records of a read stand together (SO:queryname or GO:query in the header, or --grouped) they are taken as
    they come; others are brought together first, in $TMPDIR. Marks of before go.
    """
    refuse_conflicts(context, options, [options.alignments], "alignments")
    backend = options.resources.open_backend()
    with (
        Report(context.obj, options.report) as report,
        open_alignments(options.alignments, options.grouped, backend.threads) as reads,
    ):

        def fill(output: SortedOutput, duplicates: DuplicateMarker, backend: Backend, show: Show) -> int:
            def progress(seen: int) -> None:
                show(f"{seen:,} records", _share(reads))

            return mark_file(reads, output, duplicates, backend, progress)

        named = {"alignments": printable(options.alignments)}
        written = write_marked(options, reads, named, fill, report, backend)
        if lost := written.duplicates.table.missing_mates:
            report.say(
                f"warning: of {pluralize(lost, 'read')} the mate is mapped, but not there, or not beside it: "
                "it cannot be a duplicate"
            )
        for line in [f"{written.records:,} records", *written.lines, report.cost()]:
            report.say(line)


def _share(reads: AlignmentReads) -> float | None:
    """The part of the file that has been read."""
    taken = reads.read_progress()
    return taken[0] / taken[1] if taken and taken[1] else None
