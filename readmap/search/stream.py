"""A whole search: a thread reads, the caller's thread computes, a thread writes, and buffers go round between them."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from readmap.backend import Array, Backend
from readmap.backend.buffers import Buffer, BufferPool
from readmap.errors import DataError
from readmap.formats.compression import ByteSource
from readmap.formats.output import ByteSink
from readmap.reads.alignment_chunks import AlignmentChunk
from readmap.reads.alignment_reads import AlignmentReads
from readmap.reads.chunks import BUFFERS, Chunk, Layout, read_chunks
from readmap.reads.parsing import Reads, expect_tags, find_reads

#: Device memory that a byte of reads takes on its way through the stages, measured on reads of 100 to 300 bases.
WORKING_BYTES = 20

AnyChunk = Chunk | AlignmentChunk

#: Below this chunks are not made smaller beforehand: what does not fit is halved when it fails.
LEAST_CHUNK = 1 << 20


@dataclass
class RunSummary:
    """What a search counted.

    Attributes:
        reads: records read.
        replaced: ambiguous letters of reads other than N, written as N.
        warnings: what may be wrong with the files of reads, in words.
        seconds: since the first chunk was asked for; waiting: of these, how long the computing thread waited for the
            reader and for the writer.
    """

    reads: int = 0
    replaced: int = 0
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    waiting: dict[str, float] = field(default_factory=lambda: {"read": 0.0, "write": 0.0})

    @property
    def written(self) -> int:
        """Reads whose records have been written."""
        return self.reads


class Block(NamedTuple):
    """Bytes to write, uint8 on the device, and the number of the output that they are for."""

    bytes: Array
    output: int = 0


class DoesNotFit(MemoryError):
    """For a read, or a pair, that work holds the memory does not suffice, even where it is alone."""


class Work(Protocol):
    """What is done with the reads: `blocks` gives what to write of a batch, and counts it in `summary`.

    It may hold batches, to give their blocks before those of a later one, or in `rest`. Before its first block it may
    run out of memory without having counted or held anything; then it is called with less. Else it raises DoesNotFit.
    """

    @property
    def summary(self) -> RunSummary:
        """What has been counted so far."""

    @property
    def comments(self) -> bool:
        """Whether what stands behind a read's name is SAM tags, which are written too."""

    def blocks(self, reads: Reads) -> Iterator[Block]:
        """What to write, of this batch or of those before."""

    def rest(self) -> Iterator[Block]:
        """What is still to be written behind the last batch."""


def run(
    paths: Sequence[str | ByteSource] | AlignmentReads,
    outputs: Sequence[ByteSink],
    work: Work,
    backend: Backend,
    *,
    layout: Layout = Layout.SINGLE,
    batch_reads: int | None = None,
    progress: Callable[[], None] | None = None,
) -> None:
    """Write the blocks of the reads of all files, each to its output; the header is the caller's.

    paths: of files, or sources that are open already, or alignments that are started. progress: called behind every
    block. Those in front of a bad record, or of its pair, and of a file that cannot be read are written before the
    DataError or OSError is raised.
    """
    summary = work.summary
    began = time.perf_counter()
    chunk_bytes = fitting_chunk(backend)
    pool = BufferPool(backend.host_buffer, chunk_bytes, BUFFERS)
    chunks: Iterator[AnyChunk]
    if isinstance(paths, AlignmentReads):
        chunks = paths.chunks(backend.host_buffer, chunk_bytes, batch_reads)
    else:
        warn = summary.warnings.append
        chunks = read_chunks(
            paths, backend.host_buffer, chunk_bytes, batch_reads, backend.threads, layout=layout, warn=warn
        )
    with _Writer(outputs) as writer:
        for block in _blocks(_ahead(chunks, summary), work, backend):
            waited = time.perf_counter()
            buffer = backend.download(block.bytes, pool)
            summary.waiting["write"] += time.perf_counter() - waited
            writer.put(buffer, len(block.bytes), block.output)
            summary.seconds = time.perf_counter() - began
            if progress:
                progress()
    summary.seconds = time.perf_counter() - began


def fitting_chunk(backend: Backend) -> int:
    """Bytes of reads a chunk: the backend's, or fewer where the device's free memory would not hold their arrays."""
    memory = backend.memory()
    if memory is None:
        return backend.chunk_bytes
    return max(min(backend.chunk_bytes, memory[0] // WORKING_BYTES), LEAST_CHUNK)


def _blocks(chunks: Iterable[AnyChunk], work: Work, backend: Backend) -> Iterator[Block]:
    """All blocks; those of the records in front of what cannot be read before its error."""
    try:
        for chunk in chunks:
            yield from _chunk_blocks(chunk, work, backend)
    except (DataError, OSError):
        yield from work.rest()
        raise
    yield from work.rest()


def _chunk_blocks(chunk: AnyChunk, work: Work, backend: Backend) -> Iterator[Block]:
    """The blocks of the chunk's batches, which are released; raises DataError behind those of the last good record."""
    batches = [chunk]
    while batches:
        batch = batches.pop(0)
        begun = False
        try:
            reads = _found(batch, work.comments, backend)
            for block in work.blocks(reads) if reads.count else ():
                begun = True
                yield block
        except DoesNotFit:
            raise
        except backend.memory_error:
            if not batch.is_divisible or begun:
                raise
            batches[:0] = batch.halves()
            backend.release_memory()
            continue
        if reads.bad is not None and isinstance(batch, Chunk):
            raise batch.error(reads.bad)
        batch.release()


def _found(chunk: AnyChunk, comments: bool, backend: Backend) -> Reads:
    """The reads of a chunk, as far as they are good; comments: whether they have to be tags, which alignments have."""
    if isinstance(chunk, AlignmentChunk):
        return chunk.find(backend)
    data = backend.upload(chunk.parts)
    reads = find_reads(data, chunk.reads, chunk.format.value, backend, chunk.layout)
    return expect_tags(reads, backend) if comments else reads


class _Writer:
    """A thread that writes buffers in order; an error of it is raised in the caller's thread."""

    def __init__(self, outputs: Sequence[ByteSink]) -> None:
        self._outputs = outputs
        self._queue: queue.Queue[tuple[Buffer, int, ByteSink] | None] = queue.Queue()
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

    def put(self, buffer: Buffer, count: int, output: int) -> None:
        """Have the first `count` bytes written to an output and the buffer released."""
        if self._error is not None:
            raise self._error
        self._queue.put((buffer, count, self._outputs[output]))

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            buffer, count, output = item
            try:
                if self._error is None:
                    output.write(buffer.data[:count])
            except BaseException as error:
                self._error = error
            buffer.release()


def _ahead(chunks: Iterator[AnyChunk], summary: RunSummary) -> Iterator[AnyChunk]:
    """The chunks, read by a thread of their own while the caller works on the one before."""
    ready: queue.Queue[AnyChunk | BaseException | None] = queue.Queue()

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
