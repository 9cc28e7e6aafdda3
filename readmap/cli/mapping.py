"""What readmap search tells of mapping: the header, the lines and the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from readmap import __version__
from readmap.backend import Backend
from readmap.cli.report import share, speed
from readmap.formats.fasta import Contig
from readmap.formats.sam import Form, ReadGroup, header
from readmap.index.device import DeviceIndex, Structure
from readmap.search.mapping import Mapping, Summary
from readmap.search.parameters import Scoring
from readmap.search.records import Style

#: The first MAPQ of each bin of the summary's histogram.
BINS = (0, 1, 10, 20, 30, 40, 50, 60)


class MappingTask:
    """Reads to alignments; see Task of cli/search.py."""

    structure = Structure.ARRAY
    prefix_table = True
    keeps_tags = True

    def __init__(self, scoring: Scoring, form: Form, read_group: ReadGroup) -> None:
        self._scoring = scoring
        self._form = form
        self._read_group = read_group
        self._summary = Summary()

    def header(self, contigs: Sequence[Contig], command_line: str, lines: Sequence[str]) -> bytes:
        """That of SAM or BAM."""
        return header(contigs, __version__, command_line, self._read_group.line, self._form, lines)

    def start(self, index: DeviceIndex, backend: Backend, comments: bool) -> Mapping:
        """The work on batches of reads."""
        work = Mapping(index, self._scoring, backend, Style(self._form, self._read_group, comments))
        self._summary = work.summary
        return work

    def progress(self) -> str:
        """How many reads have a place so far."""
        return f"{share(self._summary.mapped, self._summary.reads)} mapped"

    def lines(self, backend: Backend) -> list[str]:
        """The summary in words."""
        summary = self._summary
        lines = [
            f"{summary.reads:,} reads, {summary.mapped:,} mapped ({share(summary.mapped, summary.reads)}), "
            f"{speed(summary, backend)}",
            "MAPQ  " + "  ".join(f"{name}: {count:,}" for name, count in _bins(summary).items()),
        ]
        if summary.too_short:
            lines.append(f"{summary.too_short:,} reads are too short to reach the score {self._scoring.min_score} (-T)")
        if summary.replaced:
            lines.append(f"{summary.replaced:,} ambiguous letters of the reads are written as N")
        return lines

    def record(self) -> dict[str, Any]:
        """The summary for programs."""
        summary = self._summary
        return {
            "scoring": asdict(self._scoring),
            "counts": {
                "reads": summary.reads,
                "mapped": summary.mapped,
                "unmapped": summary.reads - summary.mapped,
                "too_short": summary.too_short,
                "replaced_letters": summary.replaced,
            },
            "mapq_histogram": summary.mapqs.tolist(),
        }


def _bins(summary: Summary) -> dict[str, int]:
    """Mapped reads by bins of MAPQ."""
    ends = [*BINS[1:], BINS[-1] + 1]
    names = [f"{low}-{end - 1}" if end - low > 1 else f"{low}" for low, end in zip(BINS, ends, strict=True)]
    counts = [int(summary.mapqs[low:end].sum()) for low, end in zip(BINS, ends, strict=True)]
    return dict(zip(names, counts, strict=True))
