"""The options of an exact search, and what readmap search tells of it: the header, the lines and the record."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from readmap import __version__
from readmap.backend import Backend
from readmap.cli import reads, scoring
from readmap.cli.options import FLAG, in_range, one_of
from readmap.cli.report import counted, share, speed
from readmap.errors import UsageError
from readmap.formats.fasta import Contig
from readmap.formats.sam import ReadGroup, header
from readmap.index.device import DeviceIndex, Structure
from readmap.index.index import Index
from readmap.index.occurrences import Strand
from readmap.search.exact import ALL, ExactSearch, Format, Parameters, Summary

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
    return Format(named) if named else _promised(output) or Format.SAM


def _promised(output: str | None) -> Format | None:
    """The format other than SAM by which an output's name ends."""
    plain = (output or "").removesuffix(".gz").removesuffix(".bgz")
    return ENDINGS.get(os.path.splitext(plain)[1])


def refuse_conflicts(context: typer.Context) -> None:
    """Raise UsageError where options of readmap search contradict each other.

    An option belongs to that kind of search in whose panel the help shows it.
    """
    given = {
        parameter.name: parameter
        for parameter in context.command.params
        if parameter.name and getattr(context.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
    }

    def shown_in(panel: str) -> list[str]:
        return [name for name in given if getattr(given[name], "rich_help_panel", None) == panel]

    values = context.params
    exact, output = values["exact"], values["output"]
    promised = _promised(output)
    named = values["named_format"] or promised
    table = values["count_only"] or named in (Format.TSV, Format.BED)
    conflicts = (
        (shown_in(PANEL), not exact, "only with --exact"),
        (["interleaved"], exact, "not with --exact, which takes every read for itself: leave it out"),
        (shown_in(scoring.PANEL), exact, "not with --exact, which scores no alignments"),
        (shown_in(reads.PANEL), exact, "not with --exact, which writes no tags of the reads"),
        (["replace_rg"], "read_group" not in given, "only with -R"),
        (["output"], not exact and table, f"{output} is a name for {named}, which is written only with --exact"),
        (
            ["named_format"],
            promised is Format.BAM and named != promised,
            f"{output} is a name for {os.path.splitext(output or '')[1][1:]}, not for {named}",
        ),
        (["count_only"], named not in (None, Format.TSV), f"counts are written as tsv, not as {named}"),
        (["read_group"], table, "only SAM, BAM and CRAM have read groups"),
        (["header"], table, "only SAM, BAM and CRAM have such a header"),
    )
    for names, wrong, message in conflicts:
        if found := [given[name].opts[0] for name in names if wrong and name in given]:
            raise UsageError(f"{', '.join(found)}: {message}")


class ExactTask:
    """Reads to their exact occurrences; see Task of cli/search.py."""

    keeps_tags = False

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

    def start(self, index: DeviceIndex, backend: Backend, comments: bool) -> ExactSearch:
        """The work on batches of reads, whose comments are not looked at."""
        work = ExactSearch(index, self._parameters, backend)
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
