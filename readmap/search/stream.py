"""A whole search: a thread reads, others map, a thread writes, and buffers go round between them.

reader    chunk 0   chunk 1   chunk 2   chunk 3
mappers             0 0 0 0 0 0 W  2 2 2 2 2 2 W     W: in turn, to the writer
                              1 1 1 1 1 1 W
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from readmap.backend import Backend
from readmap.errors import DataError
from readmap.formats.compression import ByteSource
from readmap.formats.output import ByteSink
from readmap.reads.alignment_reads import AlignmentReads
from readmap.reads.chunks import Chunk, Layout, read_chunks
from readmap.search.arrivals import AnyChunk, Arrival, Source
from readmap.search.devices import Devices
from readmap.search.turns import Displaced, Stopped, Turn, Turns
from readmap.search.writer import Block, Writer

#: Device memory that a byte of reads takes on its way through the stages, measured on reads of 100 to 300 bases.
WORKING_BYTES = 20

#: Buffers beside those of the chunks that are mapped: one is being filled, and one waits.
BUFFERS = 2

#: Seconds that an interrupt waits for what other threads compute.
PATIENCE = 2.0

#: Below this chunks are not made smaller beforehand: what does not fit is halved when it fails.
LEAST_CHUNK = 1 << 20


@dataclass
class RunSummary:
    """What a search counted.

    Attributes:
        reads: records read.
        replaced: ambiguous letters of reads other than N, written as N.
        warnings: what may be wrong with the files of reads, in words.
        seconds: since the first chunk was asked for; waiting: of these, how long the mapping threads waited for the
            reader, on the average, and for the writer.
        devices: by name, the reads that each device mapped, and how long each of its threads waited on the average for
            the reader, and for its turn to write.
    """

    reads: int = 0
    replaced: int = 0
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    waiting: dict[str, float] = field(default_factory=lambda: {"read": 0.0, "write": 0.0})
    devices: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def written(self) -> int:
        """Reads whose records have been written."""
        return self.reads


class DoesNotFit(MemoryError):
    """For a read, or a pair, that work holds the memory does not suffice, even where it is alone."""


class Work(Protocol):
    """What is done with the reads: `blocks` gives what to write of a batch, and counts it in `summary`.

    A batch lies on one of several devices, and goes on elsewhere where that fails. Batches are computed by several
    threads at once: `turn` waits until those in front have given all their blocks, and is called before anything is
    learnt, counted, held or given. A batch may be held, to give its blocks before those of a later one, or in `rest`.
    Where memory ends out of turn, or in turn before a block was given, the batch comes again in halves; what does not
    fit alone raises DoesNotFit.
    """

    @property
    def summary(self) -> RunSummary:
        """What has been counted so far."""

    @property
    def comments(self) -> bool:
        """Whether what stands behind a read's name is SAM tags, which are written too."""

    def blocks(self, arrival: Arrival, turn: Turn) -> Iterator[Block]:
        """What to write, of this batch or of those before."""

    def rest(self, place: int = 0) -> Iterator[Block]:
        """What is still to be written behind the last batch; on the device of a place, which the thread uses."""


def run(
    paths: Sequence[str | ByteSource] | AlignmentReads,
    outputs: Sequence[ByteSink],
    work: Work,
    backends: Sequence[Backend],
    *,
    layout: Layout | Sequence[Layout] = Layout.SINGLE,
    batch_reads: int | None = None,
    progress: Callable[[], None] | None = None,
) -> None:
    """Write the blocks of the reads of all files, each to its output; the header is the caller's.

    paths: of files, or sources that are open already, or alignments that are started. backends: the devices, in the
    order of what the work has for each; the first one has what is merged or compressed. layout: as
    read_chunks has it.
    progress: called behind every block. Those in front of a bad record, or of its pair, and of a file that cannot be
    read are written before the DataError or OSError is raised.
    """
    summary = work.summary
    began = time.perf_counter()
    devices = Devices(backends, summary.warnings.append)
    backend, chunk_bytes = devices.first, min(map(fitting_chunk, backends))
    buffers = BUFFERS + devices.chunks_at_once
    chunks: Iterator[AnyChunk]
    if isinstance(paths, AlignmentReads):
        chunks = paths.chunks(backend.host_buffer, chunk_bytes, batch_reads, buffers)
    else:
        warn = summary.warnings.append
        chunks = read_chunks(
            paths, backend.host_buffer, chunk_bytes, batch_reads, backend.threads, buffers, layout=layout, warn=warn
        )
    with Writer(outputs, backend, chunk_bytes) as writer:

        def write(block: Block) -> None:
            writer.write(block)
            summary.waiting["write"] = writer.waited
            summary.seconds = time.perf_counter() - began
            if progress:
                progress()

        _Mappers(_ahead(chunks), work, devices, write).run()
    summary.seconds = time.perf_counter() - began


def working_bytes(backend: Backend) -> int:
    """Memory of the device that the reads take, on their way through the stages."""
    return backend.chunks_at_once * fitting_chunk(backend) * WORKING_BYTES


def fitting_chunk(backend: Backend) -> int:
    """Bytes of reads a chunk: the backend's, or fewer where the device's free memory would not hold their arrays."""
    memory = backend.memory()
    if memory is None:
        return backend.chunk_bytes
    return max(min(backend.chunk_bytes, memory[0] // (WORKING_BYTES * backend.chunks_at_once)), LEAST_CHUNK)


class _Mappers:
    """Threads that map chunks, some on each device, of which the caller's is one, and what they write in the order of
    the chunks."""

    def __init__(
        self, chunks: queue.Queue[_Item | None], work: Work, devices: Devices, write: Callable[[Block], None]
    ) -> None:
        self._chunks = chunks
        self._work = work
        self._devices = devices
        self._write = write
        self._turns = Turns()
        self._error: BaseException | None = None

    def run(self) -> None:
        """Map all chunks; raises what ends that, behind the blocks of what is in front of it."""
        for place in self._devices.places:
            with self._devices.using(place):  # what is there already was not put there by the mappers
                self._devices.backends[place].synchronize()
        own, *places = self._devices.places_of_chunks
        threads = [
            threading.Thread(target=self._map_all, args=(place,), name="readmap-map", daemon=True) for place in places
        ]
        for thread in threads:
            thread.start()
        patience = None
        try:
            self._map_all(own)
        except BaseException:  # an interrupt
            self._stop()
            patience = PATIENCE
            raise
        finally:
            for thread in threads:
                thread.join(patience)
        if self._error is not None:
            raise self._error
        place = self._devices.places[0]
        with self._devices.using(place):
            for block in self._work.rest(place):
                self._write(block)

    def _stop(self) -> None:
        self._turns.stop()
        self._chunks.put(None)

    def _map_all(self, place: int) -> None:
        """The way of each of the threads, until all is done or the device of its place has failed."""
        with self._devices.using(place):
            while place in self._devices.places:
                began = time.perf_counter()
                item = self._chunks.get()
                waited = time.perf_counter() - began
                if item is None:
                    self._chunks.put(None)  # for the others
                    return
                turn = Turn(self._turns, item.number)
                try:
                    self._map(item, place, turn)
                    self._turns.drop(item.number)
                    self._count(item, place, waited, turn.waited)
                    self._turns.end(item.number)
                except Stopped:
                    return
                except BaseException as error:
                    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                        raise
                    self._fail(error, item.number)
                    return

    def _map(self, item: _Item, place: int, turn: Turn) -> None:
        """Write the blocks of a chunk; where another needs the memory, they are computed anew."""
        self._turns.begin(item.number)
        try:
            self._write_blocks(item, place, turn)
            return
        except Displaced:
            pass
        self._devices.backends[place].release_memory()
        self._turns.drop(item.number)
        self._write_blocks(item, place, turn)

    def _write_blocks(self, item: _Item, place: int, turn: Turn) -> None:
        for block in self._blocks(item, place, turn):
            turn()
            self._write(block)

    def _blocks(self, item: _Item, place: int, turn: Turn) -> Iterator[Block]:
        """Those of a chunk; where it or the next one cannot be read, all that are left before the error."""
        try:
            if isinstance(item.chunk, BaseException):
                raise item.chunk
            yield from _chunk_blocks(item.chunk, self._work, self._devices, place, turn)
        except (DataError, OSError):
            self._turns.drop(item.number)
            yield from self._work.rest(place)
            raise

    def _count(self, item: _Item, place: int, waited: float, waited_turn: float) -> None:
        """In turn: what a thread of a device has done, and what it waited for."""
        summary, backend = self._work.summary, self._devices.backends[place]
        summary.waiting["read"] += waited / self._devices.chunks_at_once
        counts = summary.devices.setdefault(backend.name, {"reads": 0, "waiting_read": 0.0, "waiting_turn": 0.0})
        counts["reads"] += 0 if isinstance(item.chunk, BaseException) else item.chunk.reads
        counts["waiting_read"] += waited / backend.chunks_at_once
        counts["waiting_turn"] += waited_turn / backend.chunks_at_once

    def _fail(self, error: BaseException, number: int) -> None:
        """End the run with an error, once all in front of it has been written."""
        try:
            self._turns.drop(number)
        except Stopped:
            return
        self._error = error
        self._stop()


def _chunk_blocks(chunk: AnyChunk, work: Work, devices: Devices, place: int, turn: Turn) -> Iterator[Block]:
    """The blocks of the chunk's batches, which are released; raises DataError behind those of the last good record."""
    batches, backend = [chunk], devices.backends[place]
    while batches:
        batch = batches.pop(0)
        begun = False
        try:
            arrival = Arrival.of(Source(batch, work.comments, devices), place)
            for block in work.blocks(arrival, turn) if arrival.reads.count else ():
                begun = True
                yield block
        except DoesNotFit:
            raise
        except backend.memory_error:
            were_others = turn.alone()
            if begun or not (were_others or batch.is_divisible):
                raise
            batches[:0] = [batch] if were_others else batch.halves()
            backend.release_memory()
            continue
        if arrival.reads.bad is not None and isinstance(batch, Chunk):
            raise batch.error(arrival.reads.bad)
        batch.release()


class _Item(NamedTuple):
    """A chunk and its number, or the error that comes in its place."""

    number: int
    chunk: AnyChunk | BaseException


def _ahead(chunks: Iterator[AnyChunk]) -> queue.Queue[_Item | None]:
    """The chunks, read by a thread of their own while others are mapped; behind them, or behind an error, None."""
    ready: queue.Queue[_Item | None] = queue.Queue()

    def read() -> None:
        number = 0
        try:
            for chunk in chunks:
                ready.put(_Item(number, chunk))
                number += 1
        except BaseException as error:
            ready.put(_Item(number, error))
        ready.put(None)

    threading.Thread(target=read, name="readmap-read", daemon=True).start()
    return ready
