"""Results -> an output of records, one behind the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Results = TypeVar("Results")


@dataclass(frozen=True)
class RecordWriter(Generic[Results]):
    """What stands before, between and behind the records, and what makes the records of some results."""

    records: Callable[[Results], Iterable[bytes]]
    begin: bytes = b""
    between: bytes = b""
    end: bytes = b""

    def write(self, results: Results, is_first: bool, write: Callable[[bytes], object]) -> None:
        """Write the records of some results. There is one at least. is_first: whether none have been written before."""
        write((b"" if is_first else self.between) + self.between.join(self.records(results)))


def json_array_writer(records: Callable[[Results], Iterable[bytes]]) -> RecordWriter[Results]:
    """The writer of a JSON array, of which each record is an element."""
    return RecordWriter(records, b"[\n", b",\n", b"\n]\n")
