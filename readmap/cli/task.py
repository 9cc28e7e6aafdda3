"""What readmap search does with the reads: cli/mapping.py aligns them, cli/exact.py finds their exact occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from readmap.backend import Backend
from readmap.formats.fasta import Contig
from readmap.index.device import DeviceIndex, Structure
from readmap.search import stream


class Task(Protocol):
    """What is done with the reads, and how it is told."""

    @property
    def structure(self) -> Structure:
        """What of the index is searched."""

    @property
    def prefix_table(self) -> bool:
        """Whether its tables of first bases are."""

    @property
    def aligns(self) -> bool:
        """Whether reads are aligned: mates with each other, and their tags are kept."""

    def header(self, contigs: Sequence[Contig], command_line: str, lines: Sequence[str]) -> bytes:
        """What is written in front of the lines; lines: of the header, that are added."""

    def start(self, index: DeviceIndex, backend: Backend, program: str, comments: bool) -> stream.Work:
        """The work on batches of reads.

        program: the ID of readmap's @PG in the header. comments: whether those of the reads are tags to write.
        """

    def progress(self) -> str:
        """What came of the reads so far."""

    def lines(self, backend: Backend) -> list[str]:
        """The summary in words."""

    def record(self) -> dict[str, Any]:
        """The summary for programs."""
