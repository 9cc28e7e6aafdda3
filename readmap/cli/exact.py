"""The options of an exact search, and what readmap search tells of it: the header, the lines and the record."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from readmap.backend import Backend
from readmap.cli.options import FLAG, in_range, one_of
from readmap.cli.report import counted, share, speed
from readmap.formats.fasta import Contig
from readmap.formats.sam import ReadGroup, header
from readmap.index.device import DeviceIndex, Structure
from readmap.index.index import Index
from readmap.search.exact import ALL, ExactSearch, Format, Parameters, Summary
from readmap.strand import Strand
from readmap.version import __version__

PANEL = "Exact search"

#: Formats that a name of an output promises; CRAM is made of BAM.
ENDINGS = {".bam": Format.BAM, ".cram": Format.BAM, ".tsv": Format.TSV, ".bed": Format.BED}

WORDS = {Structure.ARRAY: "suffix array", Structure.TREE: "suffix tree"}


def _option(name: str, what: str, metavar: str = FLAG, **more: Any) -> Any:
    return typer.Option(name, metavar=metavar, help=what, show_default=False, rich_help_panel=PANEL, **more)


Exact = Annotated[bool, _option("--exact", "Find all exact occurrences of the reads instead of aligning them.")]
StrandName = Annotated[
    str,
    _option(
        "--strand",
        "forward (the reads as they are), reverse (their reverse complements) or both (default: both).",
        "NAME",
        callback=one_of(Strand),
    ),
]
StructureName = Annotated[
    str | None,
    _option(
        "--structure",
        "array or tree: what finds them (default: what the index holds, the array first). The output is the same.",
        "NAME",
        callback=one_of((Structure.ARRAY, Structure.TREE)),
    ),
]
FormatName = Annotated[
    str | None,
    _option(
        "--format",
        "sam, tsv (query, count, contig, start, end, strand; from 1) or bed (default: by -o's ending, else sam).",
        "NAME",
        callback=one_of((Format.SAM, Format.TSV, Format.BED)),
    ),
]
MaxHits = Annotated[
    int | None,
    _option(
        "--max-hits",
        "Most occurrences of a read to write (default: all); counts are of all.",
        "N",
        callback=in_range(1, 1 << 31),
    ),
]
CountOnly = Annotated[bool, _option("--count-only", "Write how often each read occurs, as tsv (query, count).")]
NoPrefixTable = Annotated[
    bool,
    _option("--no-prefix-table", "Search without the table of first bases: the plain, slower way, to compare with."),
]


def format_of(named: str | None, count_only: bool, output: str | None) -> Format:
    """What a search writes."""
    if count_only:
        return Format.COUNTS
    return Format(named) if named else promised(output) or Format.SAM


def promised(output: str | None) -> Format | None:
    """The format other than SAM by which an output's name ends."""
    plain = (output or "").removesuffix(".gz").removesuffix(".bgz")
    return ENDINGS.get(os.path.splitext(plain)[1])


class ExactTask:
    """Reads to their exact occurrences; see cli/task.py."""

    aligns = False

    def __init__(self, parameters: Parameters, prefix_table: bool) -> None:
        """prefix_table: whether tables of first bases are used."""
        self.structure = parameters.structure
        self.prefix_table = prefix_table
        self._parameters = parameters
        self._summary = Summary()

    def header(self, contigs: Sequence[Contig], command_line: str, lines: Sequence[str]) -> bytes:
        """That of SAM or BAM, or a table's first line."""
        parameters = self._parameters
        if parameters.format in (Format.SAM, Format.BAM):
            return header(contigs, __version__, command_line, parameters.read_group.line, parameters.form, lines)
        return parameters.format.header

    def start(self, index: DeviceIndex, backend: Backend, program: str, comments: bool) -> ExactSearch:
        """The work on batches of reads, whose comments are not looked at."""
        work = ExactSearch(index, replace(self._parameters, program=program), backend)
        self._summary = work.summary
        return work

    def progress(self) -> str:
        """What has been found so far."""
        summary = self._summary
        return f"{share(summary.found, summary.reads)} found, {counted(summary.occurrences, 'occurrence')}"

    def lines(self, backend: Backend) -> list[str]:
        """The summary in words."""
        summary = self._summary
        plain = "" if self.prefix_table else " without its table of first bases"
        strand = "" if self._parameters.strand is Strand.BOTH else f", {self._parameters.strand} strand only"
        lines = [
            f"{counted(summary.reads, 'read')}, {summary.found:,} found ({share(summary.found, summary.reads)}), "
            f"{summary.unique:,} of them once; {counted(summary.occurrences, 'occurrence')}{strand}",
            f"{speed(summary, backend)}, by the {WORDS[self.structure]}{plain}",
        ]
        if summary.ambiguous:
            verb = "occurs" if summary.ambiguous == 1 else "occur"
            lines.append(f"{counted(summary.ambiguous, 'read')} with an ambiguous base {verb} nowhere")
        if summary.replaced and self._parameters.format in (Format.SAM, Format.BAM):
            lines.append(f"{summary.replaced:,} ambiguous letters of the reads are written as N")
        return lines

    def record(self) -> dict[str, Any]:
        """The summary for programs."""
        summary, parameters = self._summary, self._parameters
        return {
            "structure": str(self.structure),
            "prefix_table": self.prefix_table,
            "strand": str(parameters.strand),
            "format": str(parameters.format),
            "max_hits": parameters.most_hits if parameters.most_hits < ALL else None,
            "counts": {
                "reads": summary.reads,
                "found": summary.found,
                "unique": summary.unique,
                "occurrences": summary.occurrences,
                "ambiguous": summary.ambiguous,
                "replaced_letters": summary.replaced,
            },
        }


def exact_task(
    index: Index,
    written: Format,
    read_group: ReadGroup,
    strand: str,
    structure: str | None,
    max_hits: int | None,
    prefix_table: bool,
) -> ExactTask:
    """The task that the options ask for.

    By default the reads are found by what the index holds, the array first.
    """
    usual = Structure.ARRAY if index.structure.has_array else Structure.TREE
    by = Structure(structure) if structure else usual
    parameters = Parameters(Strand(strand), by, written, max_hits or ALL, read_group)
    return ExactTask(parameters, prefix_table)
