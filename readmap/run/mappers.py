"""Chunks -> blocks, in the order of the chunks, by threads of which each device has some."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from readmap.errors import DataError
from readmap.reads.chunks import Chunk
from readmap.run.batch_processor import DoesNotFit, Work
from readmap.run.chunk_turns import Preempted, Stopped, Turn, Turns
from readmap.run.device_reads import AnyChunk, DeviceReads, Source
from readmap.run.devices import Devices
from readmap.run.writer import Block

#: Seconds that an interrupt waits for what other threads compute.
PATIENCE = 2.0


class Item(NamedTuple):
    """A chunk and its number, or the error that comes in its place."""

    number: int
    chunk: AnyChunk | BaseException


class Mappers:
    """Threads that map chunks, some on each device, of which the caller's is one, and what they write in the order of
    the chunks."""

    def __init__(
        self,
        chunks: queue.Queue[Item | None],
        work: Work,
        devices: Devices,
        write: Callable[[Block], None],
        idle: Callable[[], None],
    ) -> None:
        """idle: called by each thread that has no chunk left to map."""
        self._chunks = chunks
        self._work = work
        self._devices = devices
        self._write = write
        self._idle = idle
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
                    self._idle()
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

    def _map(self, item: Item, place: int, turn: Turn) -> None:
        """Write the blocks of a chunk; where another needs the memory, they are computed anew."""
        self._turns.begin(item.number)
        try:
            self._write_blocks(item, place, turn)
            return
        except Preempted:
            pass
        self._devices.backends[place].release_memory()
        self._turns.drop(item.number)
        self._write_blocks(item, place, turn)

    def _write_blocks(self, item: Item, place: int, turn: Turn) -> None:
        for block in self._blocks(item, place, turn):
            turn()
            self._write(block)

    def _blocks(self, item: Item, place: int, turn: Turn) -> Iterator[Block]:
        """Those of a chunk; where it or the next one cannot be read, all that are left before the error."""
        try:
            if isinstance(item.chunk, BaseException):
                raise item.chunk
            yield from _chunk_blocks(item.chunk, self._work, self._devices, place, turn)
        except (DataError, OSError):
            self._turns.drop(item.number)
            yield from self._work.rest(place)
            raise

    def _count(self, item: Item, place: int, waited: float, waited_turn: float) -> None:
        """In turn: what a thread of a device has done, and what it waited for."""
        summary, name, at_once = self._work.summary, self._devices.backends[place].name, self._devices.at_once
        summary.waiting["read"] += waited / self._devices.concurrent_chunks
        counts = summary.devices.setdefault(name, {"reads": 0, "waiting_read": 0.0, "waiting_turn": 0.0})
        counts["reads"] += 0 if isinstance(item.chunk, BaseException) else item.chunk.reads
        counts["waiting_read"] += waited / at_once
        counts["waiting_turn"] += waited_turn / at_once

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
            arrival = DeviceReads.of(Source(batch, work.comments, devices), place)
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
