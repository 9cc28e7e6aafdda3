"""Read files in chunks, check the invariants of each chunk, and collect the contents."""

import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.reads.chunks import PairLayout, RecordFormat, read_chunks


def allocate(nbytes: int) -> NDArray[np.uint8]:
    """Allocate a buffer filled with newlines, which a reader must not mistake for its input."""
    return np.full(nbytes, 10, np.uint8)


@dataclass
class Found:
    """The collected contents of all chunks; parts: by mate of a pair, or of all single reads."""

    parts: list[bytes] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    formats: set[RecordFormat] = field(default_factory=set)
    error: str = ""
    warnings: list[str] = field(default_factory=list)


def read(
    paths: Sequence[pathlib.Path],
    size: int = 1 << 20,
    batch_reads: int | None = None,
    layout: PairLayout = PairLayout.SINGLE,
    threads: int = 1,
) -> Found:
    """Read all chunks and check their invariants; an error ends the reading and is stored as a message."""
    found, positions = Found([b""] * layout.files), dict[tuple[str, ...], int]()
    warn, given = found.warnings.append, list(map(str, paths))
    try:
        for chunk in read_chunks(given, allocate, size, batch_reads, threads, layout=layout, warn=warn):
            least = 2 if layout.paired else 1
            assert chunk.layout is layout
            assert set(chunk.paths) <= set(map(str, paths))
            assert len(chunk.parts) == len(chunk.buffers) == layout.files
            assert chunk.first_record == positions.get(chunk.paths, 0)
            assert chunk.reads % least == 0
            assert least <= chunk.reads <= max(batch_reads or chunk.reads, least)
            for part, buffer in zip(chunk.parts, chunk.buffers, strict=True):
                assert part.dtype == np.uint8
                assert np.shares_memory(part, buffer.data)
                assert part.tobytes().endswith(b"\n")
                assert np.count_nonzero(part == 10) == chunk.records * chunk.format.value
            positions[chunk.paths] = chunk.first_record + chunk.records
            found.parts = [whole + part.tobytes() for whole, part in zip(found.parts, chunk.parts, strict=True)]
            found.records.append(chunk.records)
            found.formats.add(chunk.format)
            chunk.release()
    except DataError as error:
        found.error = str(error).replace(f"{paths[0].parent}/", "")
    return found
