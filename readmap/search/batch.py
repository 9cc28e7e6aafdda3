"""Reads that have been searched, each for itself, and parts of such a batch."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TypeVar

from readmap.backend import Array, Backend
from readmap.reads.parsing import Reads
from readmap.reads.queries import Queries, pack_queries
from readmap.search.placement import Placements
from readmap.search.windows import Windows

_BySlot = TypeVar("_BySlot", Windows, Placements)


@dataclass(frozen=True)
class Searched:
    """A batch of which each read has been searched for itself."""

    reads: Reads
    queries: Queries
    windows: Windows
    placements: Placements

    def part(self, first: int, last: int, backend: Backend) -> Searched:
        """The same of the records [first, last) alone."""
        reads = self.reads.part(first, last)
        queries = pack_queries(reads, backend)
        slots = backend.to_host(self.queries.slot_of)[first + backend.to_host(queries.order)]

        def rows_of(array: Array | int) -> Array | int:
            if isinstance(array, int):
                return array
            rows = backend.to_host(array).reshape(self.reads.count, -1, *array.shape[1:])[slots]
            return backend.to_device(rows.reshape(-1, *array.shape[1:]))

        def of_slots(held: _BySlot) -> _BySlot:
            """Of each of the part's slots, as many rows as each has."""
            return replace(held, **{field.name: rows_of(getattr(held, field.name)) for field in fields(held)})

        return Searched(reads, queries, of_slots(self.windows), of_slots(self.placements))
