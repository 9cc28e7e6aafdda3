"""A whole search: a thread reads, the caller's thread computes, a thread writes, and buffers go round between them."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from readmap.backend import Array, Backend
from readmap.formats import bad_records
from readmap.formats.buffers import Buffer, BufferPool
from readmap.formats.chunks import BUFFERS, Chunk, read_chunks
from readmap.formats.output import Output
from readmap.formats.reads import find_reads
from readmap.index.index import DeviceIndex
from readmap.search.alignments import format_records
from readmap.search.parameters import Scoring
from readmap.search.pipeline import Mapped, map_batch

#: Device memory that a byte of reads takes on its way through the stages, measured on reads of 100 to 300 bases.
WORKING_BYTES = 20

#: Below this chunks are not made smaller beforehand: what does not fit is halved when it fails.
LEAST_CHUNK = 1 << 20

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass
class Summary:
    """What a search counted.

    Attributes:
        reads, mapped: records read, and those with a place.
        too_short: reads that cannot reach the minimum score even without a difference.
        replaced: ambiguous letters of reads other than N, written as N.
        mapqs: int64 [61], mapped reads by MAPQ.
        seconds: since the first chunk was asked for; waiting: of these, how long the computing thread waited for the
            reader and for the writer.
    """

    reads: int = 0
    mapped: int = 0
    too_short: int = 0
    replaced: int = 0
    mapqs: np.ndarray[Any, np.dtype[np.int64]] = field(default_factory=lambda: np.zeros(61, np.int64))
    seconds: float = 0.0
    waiting: dict[str, float] = field(default_factory=lambda: {"read": 0.0, "write": 0.0})

    def add(self, mapped: Mapped, scoring: Scoring, backend: Backend) -> None:
        """Count a batch."""
        placed = backend.to_host(mapped.alignments.contigs) >= 0
        mapqs = backend.to_host(mapped.alignments.mapqs)[placed]
        self.reads += len(placed)
        self.mapped += len(mapqs)
        self.mapqs += np.bincount(mapqs, minlength=61)
        self.too_short += int(np.count_nonzero(mapped.queries.host_lengths * scoring.match < scoring.min_score))
        self.replaced += mapped.queries.replaced


def search(
    paths: Sequence[str],
    output: Output,
    index: DeviceIndex,
    backend: Backend,
    scoring: Scoring,
    *,
    read_group: bytes = b"",
    batch_reads: int | None = None,
    progress: Callable[[Summary], None] | None = None,
) -> Summary:
    """Map the reads of all files and write their SAM records; the header is the caller's.

    Records in front of a bad one are written before its DataError is raised.
    """
    summary = Summary()
    began = time.perf_counter()
    tag = backend.to_device(np.frombuffer(read_group, np.uint8))
    chunk_bytes = fitting_chunk(backend)
    pool = BufferPool(backend.host_buffer, chunk_bytes, BUFFERS)
    chunks = read_chunks(paths, backend.host_buffer, chunk_bytes, batch_reads, backend.threads)
    with _Writer(output) as writer:
        for chunk in _ahead(chunks, summary):
            for mapped, records in _mapped(chunk, index, scoring, tag, backend):
                summary.add(mapped, scoring, backend)
                waited = time.perf_counter()
                buffer = backend.download(records, pool)
                summary.waiting["write"] += time.perf_counter() - waited
                writer.put(buffer, len(records))
            chunk.release()
            summary.seconds = time.perf_counter() - began
            if progress:
                progress(summary)
    summary.seconds = time.perf_counter() - began
    return summary


def fitting_chunk(backend: Backend) -> int:
    """Bytes of reads a chunk: the backend's, or fewer where the device's free memory would not hold their arrays."""
    memory = backend.memory()
    if memory is None:
        return backend.chunk_bytes
    return max(min(backend.chunk_bytes, memory[0] // WORKING_BYTES), LEAST_CHUNK)


def _mapped(
    chunk: Chunk, index: DeviceIndex, scoring: Scoring, tag: Array, backend: Backend
) -> Iterator[tuple[Mapped, Array]]:
    """The chunk's batches behind the last stage, with their records; raises DataError behind the last good one."""
    lines = chunk.format.value
    begin, parts = 0, [(chunk.data, chunk.records)]
    while parts:
        data, records = parts.pop(0)
        try:
            reads = find_reads(backend.to_device(data), records, lines, backend)
            if reads.count:
                mapped = map_batch(reads, index, scoring, backend)
                yield mapped, format_records(mapped.alignments, reads, mapped.queries, index, tag, backend)
        except backend.memory_error:
            if records == 1:
                raise
            parts = _halves(data, records, lines) + parts
            backend.release_memory()
            continue
        if reads.bad is not None:
            raise bad_records.describe(
                data, reads.count, reads.bad, lines, chunk.path, chunk.first_record + begin + reads.count + 1
            )
        begin += records


def _halves(data: Bytes, records: int, lines_a_record: int) -> list[tuple[Bytes, int]]:
    half = records // 2
    cut = int(np.flatnonzero(data == ord("\n"))[half * lines_a_record - 1]) + 1
    return [(data[:cut], half), (data[cut:], records - half)]


class _Writer:
    """A thread that writes buffers in order; an error of it is raised in the caller's thread."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._queue: queue.Queue[tuple[Buffer, int] | None] = queue.Queue()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="readmap-write", daemon=True)

    def __enter__(self) -> _Writer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._queue.put(None)
        if kind is not None and not issubclass(kind, Exception):
            return  # an interrupt does not wait for a slow disk
        self._thread.join()
        if self._error is not None and (kind is None or not issubclass(kind, BrokenPipeError)):
            raise self._error

    def put(self, buffer: Buffer, count: int) -> None:
        """Have the first `count` bytes written and the buffer released."""
        if self._error is not None:
            raise self._error
        self._queue.put((buffer, count))

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            buffer, count = item
            try:
                if self._error is None:
                    self._output.write(buffer.data[:count])
            except BaseException as error:
                self._error = error
            buffer.release()


def _ahead(chunks: Iterator[Chunk], summary: Summary) -> Iterator[Chunk]:
    """The chunks, read by a thread of their own while the caller works on the one before."""
    ready: queue.Queue[Chunk | BaseException | None] = queue.Queue()

    def read() -> None:
        try:
            for chunk in chunks:
                ready.put(chunk)
            ready.put(None)
        except BaseException as error:
            ready.put(error)

    threading.Thread(target=read, name="readmap-read", daemon=True).start()
    while True:
        waited = time.perf_counter()
        item = ready.get()
        summary.waiting["read"] += time.perf_counter() - waited
        if item is None:
            return
        if isinstance(item, BaseException):
            raise item
        yield item
