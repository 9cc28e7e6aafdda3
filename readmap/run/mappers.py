"""Chunks -> blocks in the order of the chunks, by threads that map chunks on the devices."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from readmap.errors import DataError
from readmap.reads.chunks import Chunk
from readmap.run.batch_processor import BatchProcessor, DoesNotFit
from readmap.run.chunk_turns import ChunkTurn, ChunkTurns, Preempted, Stopped
from readmap.run.device_reads import AnyChunk, DeviceReads, Source
from readmap.run.devices import Devices
from readmap.run.writer import Block

#: Seconds that an interrupt waits for what other threads compute.
INTERRUPT_SECONDS = 2.0


class Item(NamedTuple):
    """A chunk and its position in the order of the reads, or the error that was raised instead of it."""

    position: int
    chunk: AnyChunk | BaseException


class Mappers:
    """Threads, one of them the calling thread, that map chunks and write their blocks in the order of the chunks."""

    def __init__(
        self,
        chunks: queue.Queue[Item | None],
        processor: BatchProcessor,
        devices: Devices,
        write: Callable[[Block], None],
        idle: Callable[[], None],
    ) -> None:
        """idle: called by each thread that has no chunk left to map."""
        self._chunks, self._processor, self._devices = chunks, processor, devices
        self._write, self._idle = write, idle
        self._turns = ChunkTurns()
        self._error: BaseException | None = None

    def run(self) -> None:
        """Map all chunks and write their blocks; raise the first error after all earlier blocks have been written."""
        for device_index in self._devices.working:
            with self._devices.using(device_index):  # wait for what other threads put there, such as the index
                self._devices.backends[device_index].synchronize()
        own, *others = [*self._devices.working] * self._devices.at_once  # a thread on each device, then further ones
        threads = [
            threading.Thread(target=self._map_all, args=(other,), name="readmap-map", daemon=True) for other in others
        ]
        for thread in threads:
            thread.start()
        timeout = None
        try:
            self._map_all(own)
        except BaseException:  # an interrupt
            self._stop()
            timeout = INTERRUPT_SECONDS
            raise
        finally:
            for thread in threads:
                thread.join(timeout)
        if self._error is not None:
            raise self._error
        device_index = self._devices.working[0]
        with self._devices.using(device_index):
            for block in self._processor.remaining_blocks(device_index):
                self._write(block)

    def _stop(self) -> None:
        self._turns.stop()
        self._chunks.put(None)

    def _map_all(self, device_index: int) -> None:
        """Map and write chunks in one thread until none is left, its device has failed, or the run has ended."""
        with self._devices.using(device_index):
            while device_index in self._devices.working:
                start = time.perf_counter()
                item = self._chunks.get()
                waited = time.perf_counter() - start
                if item is None:
                    self._chunks.put(None)  # for the other threads
                    self._idle()
                    return
                turn = ChunkTurn(self._turns, item.position)
                try:
                    self._map(item, device_index, turn)
                    self._turns.release_and_wait(item.position)
                    self._count(item, device_index, waited, turn.waited)
                    self._turns.end(item.position)
                except Stopped:
                    return
                except BaseException as error:
                    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                        raise
                    self._fail(error, item.position)
                    return

    def _map(self, item: Item, device_index: int, turn: ChunkTurn) -> None:
        """Map a chunk and write its blocks; if an earlier chunk needs the memory, map it again in turn."""
        self._turns.start(item.position)
        try:
            self._write_blocks(item, device_index, turn)
            return
        except Preempted:
            pass
        self._devices.backends[device_index].release_memory()
        self._turns.release_and_wait(item.position)
        self._write_blocks(item, device_index, turn)

    def _write_blocks(self, item: Item, device_index: int, turn: ChunkTurn) -> None:
        for block in self._blocks(item, device_index, turn):
            turn.wait()
            self._write(block)

    def _blocks(self, item: Item, device_index: int, turn: ChunkTurn) -> Iterator[Block]:
        """Yield the blocks of a chunk; if reading fails here, yield all blocks that remain before raising the error."""
        try:
            if isinstance(item.chunk, BaseException):
                raise item.chunk
            yield from _chunk_blocks(item.chunk, self._processor, self._devices, device_index, turn)
        except (DataError, OSError):
            self._turns.release_and_wait(item.position)
            yield from self._processor.remaining_blocks(device_index)
            raise

    def _count(self, item: Item, device_index: int, waited: float, waited_turn: float) -> None:
        """Count a chunk in the summary; waited, waited_turn: seconds that its thread waited to read and to write it."""
        summary, at_once = self._processor.summary, self._devices.at_once
        name = self._devices.backends[device_index].name
        summary.waiting["read"] += waited / (at_once * len(self._devices.backends))
        counts = summary.devices.setdefault(name, {"reads": 0, "waiting_read": 0.0, "waiting_turn": 0.0})
        counts["reads"] += 0 if isinstance(item.chunk, BaseException) else item.chunk.reads
        counts["waiting_read"] += waited / at_once
        counts["waiting_turn"] += waited_turn / at_once

    def _fail(self, error: BaseException, chunk_index: int) -> None:
        """Wait until all earlier chunks have been written, store the error that `run` raises, and end the run."""
        try:
            self._turns.release_and_wait(chunk_index)
        except Stopped:
            return
        self._error = error
        self._stop()


def _chunk_blocks(
    chunk: AnyChunk, processor: BatchProcessor, devices: Devices, device_index: int, turn: ChunkTurn
) -> Iterator[Block]:
    """Map a chunk on a device and yield its blocks of output bytes. If memory runs out, wait until earlier chunks have
    ended, then map it again or in halves. Raises DataError after the blocks of all reads before an invalid one."""
    batches, backend = [chunk], devices.backends[device_index]
    while batches:
        batch = batches.pop(0)
        has_yielded = False
        try:
            reads = DeviceReads.of(Source(batch, processor.comments, devices), device_index)
            for block in processor.blocks(reads, turn) if reads.reads.count else ():
                has_yielded = True
                yield block
        except DoesNotFit:
            raise
        except backend.memory_error:
            were_others = turn.wait_exclusive()
            if has_yielded or not (were_others or batch.is_divisible):
                raise
            batches[:0] = [batch] if were_others else batch.halves()
            backend.release_memory()
            continue
        if reads.reads.bad is not None and isinstance(batch, Chunk):
            raise batch.error(reads.reads.bad)
        batch.release()
