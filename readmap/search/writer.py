"""Blocks of records on a device -> outputs: as they lie there where an output takes that, else in the host's memory."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from readmap.backend import Array, Backend
from readmap.backend.buffers import BufferPool
from readmap.bam.order import SortedRecords, host_keys
from readmap.bam.sorted_output import SortedOutput
from readmap.formats.output import ByteSink

#: Bytes that are written while the next ones come from the device, and buffers for them.
OUTPUT_BYTES, OUTPUT_BUFFERS = 64 << 20, 4

#: Blocks on the device that outputs have not done with.
LENT_BLOCKS = 2


class Block(NamedTuple):
    """Bytes to write, uint8 on the device that the thread uses, and the number of the output that they are for; a run,
    on the first device, where it sorts."""

    bytes: Array
    output: int = 0
    run: SortedRecords | None = None


class _Step(NamedTuple):
    """What the writer does with a block, and what waits until it is there."""

    do: Callable[[], None]
    arrived: Callable[[], None] | None


class Writer:
    """A thread that hands blocks to outputs in order; an error of it is raised in the thread of the caller.

    waited: seconds that callers waited for outputs.
    """

    def __init__(self, outputs: Sequence[ByteSink], backend: Backend, most: int) -> None:
        """most: bytes of a block, about."""
        self.waited = 0.0
        self._outputs, self._backend = outputs, backend
        self._pool = BufferPool(backend.host_buffer, min(most, OUTPUT_BYTES), OUTPUT_BUFFERS)
        # Of no bytes: who lends has one of them.
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
        """Have a block written, which the caller does not change any more."""
        sink = self._outputs[block.output]
        if sink.from_device:
            self._lend(block, sink)
        else:
            self._download(block, sink)

    def _lend(self, block: Block, sink: ByteSink) -> None:
        self._backend.synchronize()  # others' streams do not wait for this thread's
        began = time.perf_counter()
        lent = self._lent.take()
        self.waited += time.perf_counter() - began
        if block.run is None:
            self._put(partial(sink.lend, block.bytes, lent.release))
        else:
            self._put(partial(_sorting(sink).hold, block.run, lent.release))

    def _download(self, block: Block, sink: ByteSink) -> None:
        if block.run is not None:
            keys, ends = host_keys(block.run, self._backend), self._backend.to_host(block.run.ends)
            self._put(partial(_sorting(sink).begin_run, keys, ends))
        for begin in range(0, len(block.bytes), OUTPUT_BYTES):
            part = block.bytes[begin : begin + OUTPUT_BYTES]
            began = time.perf_counter()
            buffer, arrived = self._backend.download(part, self._pool)
            self._pool.grow()
            self.waited += time.perf_counter() - began
            self._put(partial(sink.lend, buffer.data[: len(part)], buffer.release), arrived)

    def _put(self, do: Callable[[], None], arrived: Callable[[], None] | None = None) -> None:
        if self._error is not None:
            raise self._error
        self._queue.put(_Step(do, arrived))

    def _run(self) -> None:
        with self._backend.own_stream():
            while (step := self._queue.get()) is not None:
                try:
                    if step.arrived is not None:
                        step.arrived()  # whatever has failed: a buffer to which bytes are under way stays
                    if self._error is None:
                        step.do()
                except BaseException as error:
                    self._error = error
                    # A failed output may keep what it has.
                    self._pool.close()
                    self._lent.close()


def _sorting(sink: ByteSink) -> SortedOutput:
    """The output as what it is where runs come."""
    if not isinstance(sink, SortedOutput):
        raise TypeError(f"{sink.name} sorts nothing")
    return sink


def _nothing(_: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.empty(0, np.uint8)
