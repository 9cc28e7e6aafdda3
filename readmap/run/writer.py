"""Blocks of records on a device -> outputs: as they lie there where an output takes that, else in the host's memory."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from readmap.backend import Array, Backend
from readmap.backend.buffers import Buffer, BufferPool
from readmap.bam.order import SortedRecords, host_keys
from readmap.bam.sorted_output import SortedOutput
from readmap.formats.output import ByteSink

#: Blocks on devices that outputs have not done with.
LENT_BLOCKS = 2

#: Bytes that are written while the next ones come from the device, buffers for them, and how many of these are filled.
OUTPUT_BYTES, OUTPUT_BUFFERS, UNDER_WAY = 64 << 20, 4, 2


#: A buffer to which bytes are under way, how many, and what waits for them.
_Coming = tuple[Buffer, int, Callable[[], None]]


@dataclass(eq=False)
class Block:
    """Bytes to write.

    Attributes:
        bytes: uint8, on the device that the thread uses. backend: this device.
        output: the number of that which they are for. run: on the first device, where it sorts.
        error: of the device, which has failed before all bytes were copied; copied: how many the output has.
    """

    bytes: Array
    backend: Backend
    output: int = 0
    run: SortedRecords | None = None
    error: Exception | None = None
    copied: int = 0


class _Step(NamedTuple):
    """A block for the thread that writes; done: ends its holding; ended: once it has been copied, or never will be."""

    block: Block
    done: Callable[[], None]
    ended: threading.Event


class Writer:
    """A thread that hands blocks to outputs in order; an error of it is raised in the thread of the caller.

    waited: seconds that callers waited for outputs.
    """

    def __init__(
        self,
        outputs: Sequence[ByteSink],
        backend: Backend,
        most: int,
        device_errors: tuple[type[Exception], ...] = (),
    ) -> None:
        """most: bytes of a block, about. device_errors: which the block is told, instead of the caller, who can have it
        made on another device; none of them where there is no other."""
        self.waited = 0.0
        self._outputs, self._backend, self._device_errors = outputs, backend, device_errors
        self._pool = BufferPool(backend.host_buffer, min(most, OUTPUT_BYTES), OUTPUT_BUFFERS)
        self._lost = list[Buffer]()
        # Of no bytes: who hands over a block has one of them.
        self._lent = BufferPool(_nothing, 0, LENT_BLOCKS)
        self._queue: queue.Queue[_Step | None] = queue.Queue()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="readmap-write", daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._queue.put(None)
        if kind is not None and not issubclass(kind, Exception):
            return  # an interrupt does not wait for a slow disk
        self._thread.join()
        if self._error is not None and (kind is None or not issubclass(kind, BrokenPipeError)):
            raise self._error

    def write(self, block: Block) -> None:
        """Have a block written, which the caller does not change any more; where another device could make it, it has
        been copied then, or has the error of its device."""
        try:
            block.backend.synchronize()  # the writer's stream does not wait for this thread's
        except self._device_errors as error:
            block.error = error
            return
        began = time.perf_counter()
        lent = self._lent.take()
        if self._error is None:
            step = _Step(block, lent.release, threading.Event())
            self._queue.put(step)
            if self._device_errors and not self._outputs[block.output].from_device:
                step.ended.wait()
        self.waited += time.perf_counter() - began
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while (step := self._queue.get()) is not None:
            try:
                if self._error is None:
                    self._hand_on(step)
            except BaseException as error:
                self._error = error
                # A failed output may keep what it has.
                self._pool.close()
                self._lent.close()
            step.ended.set()
            del step  # the block's memory, while there is no other

    def _hand_on(self, step: _Step) -> None:
        block, done, _ = step
        sink, run = self._outputs[block.output], block.run
        if sink.from_device or run is not None:
            self._backend.use_thread_stream()
        if sink.from_device:
            if run is None:
                sink.write_borrowed(block.bytes, done)
            else:
                _sorting(sink).add_device_run(run, done)
            return
        if run is not None:
            _sorting(sink).begin_run(host_keys(run, self._backend), self._backend.to_host(run.ends))
        for buffer, size in self._bring(step):
            block.copied += size
            sink.write_borrowed(buffer.data[:size], buffer.release)
        done()

    def _bring(self, step: _Step) -> Iterator[tuple[Buffer, int]]:
        """The bytes of a block in buffers, each with how many it has, as far as its device brings them; the next ones
        are under way."""
        array, backend, coming = step.block.bytes, step.block.backend, deque[_Coming]()
        try:
            backend.use_thread_stream()
            for begin in range(0, len(array), OUTPUT_BYTES):
                part = array[begin : begin + OUTPUT_BYTES]
                buffer, arrived = backend.download(part, self._pool)
                coming.append((buffer, len(part), arrived))
                self._pool.grow()
                if len(coming) == UNDER_WAY:
                    yield _first(coming)
            while coming:
                first = _first(coming)
                if not coming:
                    step.ended.set()  # the last bytes are written while the next block is made
                yield first
        except self._device_errors as error:
            if _works(backend, self._device_errors):  # it is the host's memory, or another's
                raise
            step.block.error = error
        finally:
            for buffer, _, arrived in coming:
                try:
                    arrived()
                except self._device_errors:  # bytes may still come: another one goes round in its place
                    buffer.detach()
                    self._lost.append(buffer)
                else:
                    buffer.release()


def _works(backend: Backend, device_errors: tuple[type[Exception], ...]) -> bool:
    """Whether a device has not failed."""
    try:
        backend.synchronize()
    except device_errors:
        return False
    return True


def _first(coming: deque[_Coming]) -> tuple[Buffer, int]:
    """The first one, once it has come."""
    buffer, size, arrived = coming[0]
    arrived()
    coming.popleft()  # until then the buffer stays, whatever happens
    return buffer, size


def _sorting(sink: ByteSink) -> SortedOutput:
    """The output as what it is where runs come."""
    if not isinstance(sink, SortedOutput):
        raise TypeError(f"{sink.name} sorts nothing")
    return sink


def _nothing(_: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.empty(0, np.uint8)
