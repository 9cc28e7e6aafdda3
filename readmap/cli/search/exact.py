"""The exact mode of readmap search: its header, its work and its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from readmap.backend import Backend
from readmap.cli.search.options import Options
from readmap.cli.search.speed import speed
from readmap.formats.fasta import Contig
from readmap.formats.sam import header
from readmap.formats.wording import format_ratio, pluralize
from readmap.index.device import DeviceIndex, IndexStructure
from readmap.index.index import Index
from readmap.run.exact import ALL, ExactSearch, ExactSummary, Format, Parameters
from readmap.strand import Strand
from readmap.version import __version__

WORDS = {IndexStructure.ARRAY: "suffix array", IndexStructure.TREE: "suffix tree"}


class ExactMode:
    """Reads to their exact occurrences; not frozen: `start` sets the summary that is reported."""

    def __init__(self, options: Options, index: Index) -> None:
        """options: raises UsageError where the read group is none. index: the array finds reads where it has both."""
        exact = options.exact
        usual = IndexStructure.ARRAY if index.structure.has_array else IndexStructure.TREE
        self.structure = IndexStructure(exact.structure) if exact.structure else usual
        self.prefix_table = not exact.no_prefix_table
        self._parameters = Parameters(
            Strand(exact.strand), self.structure, options.format, exact.max_hits or ALL, options.output.group()
        )
        self._summary = ExactSummary()

    def header(self, contigs: Sequence[Contig], command_line: str, lines: Sequence[str]) -> bytes:
        """The header of SAM or BAM, or a table's first line."""
        parameters = self._parameters
        if parameters.format in (Format.SAM, Format.BAM):
            return header(contigs, __version__, command_line, parameters.read_group.line, parameters.form, lines)
        return parameters.format.header

    def start(
        self, indexes: Sequence[DeviceIndex], backends: Sequence[Backend], program: str, comments: bool, paired: bool
    ) -> ExactSearch:
        """The work on batches of reads; neither their comments nor their mates are looked at."""
        work = ExactSearch(indexes, replace(self._parameters, program=program), backends)
        self._summary = work.summary
        return work

    def progress(self) -> str:
        """Counts so far, in words."""
        summary = self._summary
        return f"{format_ratio(summary.found, summary.reads)} found, {pluralize(summary.occurrences, 'occurrence')}"

    def lines(self, devices: str) -> list[str]:
        """The summary in words; devices: what did the work."""
        summary = self._summary
        plain = "" if self.prefix_table else " without its table of first bases"
        strand = "" if self._parameters.strand is Strand.BOTH else f", {self._parameters.strand} strand only"
        lines = [
            f"{pluralize(summary.reads, 'read')}, {summary.found:,} found "
            f"({format_ratio(summary.found, summary.reads)}), "
            f"{summary.unique:,} of them once; {pluralize(summary.occurrences, 'occurrence')}{strand}",
            f"{speed(summary, devices)}, by the {WORDS[self.structure]}{plain}",
        ]
        if summary.ambiguous:
            verb = "occurs" if summary.ambiguous == 1 else "occur"
            lines.append(f"{pluralize(summary.ambiguous, 'read')} with an ambiguous base {verb} nowhere")
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
