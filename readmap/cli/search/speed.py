"""The two modes of readmap search: alignment.py aligns reads, exact.py finds their exact occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from readmap.backend import Backend
from readmap.cli.common.wording import device_in_words
from readmap.formats.fasta import Contig
from readmap.index.device import DeviceIndex, Structure
from readmap.search import stream


class SearchMode(Protocol):
    """The way in which one search finds its reads, and its report."""

    @property
    def structure(self) -> Structure:
        """The part of the index that is searched."""

    @property
    def prefix_table(self) -> bool:
        """Whether the index's tables of first bases are used."""

    def header(self, contigs: Sequence[Contig], command_line: str, lines: Sequence[str]) -> bytes:
        """The beginning of the output; lines: to add to a header of SAM or BAM."""

    def start(self, index: DeviceIndex, backend: Backend, program: str, comments: bool) -> stream.Work:
        """The work on batches of reads, whose summary the further methods report.

        program: the ID of readmap's @PG in the header. comments: whether those of the reads are tags to write.
        """

    def progress(self) -> str:
        """Counts so far, in words."""

    def lines(self, backend: Backend) -> list[str]:
        """The summary in words."""

    def record(self) -> dict[str, Any]:
        """The summary for programs."""


def rate(summary: stream.RunSummary) -> float:
    """Reads a second."""
    return summary.reads / max(summary.seconds, 1e-9)


def speed(summary: stream.RunSummary, backend: Backend) -> str:
    """The speed of a search and its device, in words."""
    return f"{rate(summary):,.0f} reads/s on {device_in_words(backend)}"
