"""Blocks on a device -> outputs: as device arrays if the output takes them, else copied to host buffers."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from readmap.backend import Array, Backend
from readmap.backend.buffers import Buffer, BufferPool
from readmap.bam.order import SortedRecords, host_keys
from readmap.bam.sorted_output import SortedOutput
from readmap.formats.output import ByteSink

#: Limit of the blocks that outputs have not released yet.
LENT_BLOCKS = 2
#: Size and number of the host buffers, and the number of copies from the device in flight.
OUTPUT_BYTES, OUTPUT_BUFFERS, IN_FLIGHT = 64 << 20, 4, 2

#: A buffer that is being filled, its number of bytes, and a function that waits for them.
_Transfer = tuple[Buffer, int, Callable[[], None]]


@dataclass(eq=False)
class Block:
    """Bytes to write: uint8, on the device `backend`, which the thread uses. output: index of the output. run: the
    sorted records if the output is sorted; then on the first device. error: set if the device failed before all bytes
    were copied; copied: bytes that the output has received."""

    bytes: Array
    backend: Backend
    output: int = 0
    run: SortedRecords | None = None
    error: Exception | None = None
    copied: int = 0


class ReplayFilter:
    """Counts the bytes that outputs have received for some reads, whose blocks may be made again."""

    def __init__(self) -> None:
        self._ahead = Counter[int]()

    def missing(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield the blocks, without the bytes that the outputs have received before. Raises the error of a device that
        fails before all bytes are copied; then the caller makes all these blocks again."""
        given = Counter[int]()
        for block in blocks:
            known = min(self._ahead[block.output], len(block.bytes))
            self._ahead[block.output] -= known
            given[block.output] += known
            if known and known == len(block.bytes):
                continue
            rest = replace(block, bytes=block.bytes[known:]) if known else block
            yield rest
            if rest.error:
                given[block.output] += rest.copied
                self._ahead += given
                raise rest.error
            given[block.output] += len(rest.bytes)


class _Step(NamedTuple):
    """A block for the writing thread; done: releases it; ended: set when it has been copied or has failed."""

    block: Block
    done: Callable[[], None]
    ended: threading.Event


class Writer:
    """A thread that writes blocks to outputs in order; its error is raised in the caller's thread. waited: seconds that
    callers waited for outputs."""

    def __init__(
        self, outputs: Sequence[ByteSink], backend: Backend, limit: int, device_errors: tuple[type[Exception], ...] = ()
    ) -> None:
        """limit: approximate size of a block in bytes. device_errors: are stored in the block instead of raised, since
        the caller can make the block on another device; empty if there is no other device."""
        self.waited = 0.0
        self._outputs, self._backend, self._device_errors = outputs, backend, device_errors
        self._pool = BufferPool(backend.host_buffer, min(limit, OUTPUT_BYTES), OUTPUT_BUFFERS)
        self._lost = list[Buffer]()
        # Buffers of no bytes: each block that is being written takes one.
        self._lent = BufferPool(lambda _: np.empty(0, np.uint8), 0, LENT_BLOCKS)
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
        """Queue a block for writing; the caller must not change it. If another device could make the block, wait until
        it has been copied or has the error of its device."""
        try:
            block.backend.synchronize()  # the writer's stream does not wait for this thread's
        except self._device_errors as error:
            block.error = error
            return
        start = time.perf_counter()
        lent = self._lent.take()
        if self._error is None:
            step = _Step(block, lent.release, threading.Event())
            self._queue.put(step)
            if self._device_errors and not self._outputs[block.output].from_device:
                step.ended.wait()
        self.waited += time.perf_counter() - start
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        """Write queued blocks until None; after an error, drop them."""
        while (step := self._queue.get()) is not None:
            try:
                if self._error is None:
                    self._write_step(step)
            except BaseException as error:
                self._error = error
                # A failed output may never release its buffers.
                self._pool.close()
                self._lent.close()
            step.ended.set()
            del step  # frees the memory of the block while waiting for the next one

    def _write_step(self, step: _Step) -> None:
        """Write a block to its output, as device arrays if the output takes them, else through host buffers."""
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
        for buffer, size in self._download(step):
            block.copied += size
            sink.write_borrowed(buffer.data[:size], buffer.release)
        done()

    def _download(self, step: _Step) -> Iterator[tuple[Buffer, int]]:
        """Yield the bytes of a block in host buffers, each with its number of bytes, while the next ones are copied. If
        the device fails, store its error in the block and stop."""
        array, backend, transfers = step.block.bytes, step.block.backend, deque[_Transfer]()
        try:
            backend.use_thread_stream()
            for start in range(0, len(array), OUTPUT_BYTES):
                part = array[start : start + OUTPUT_BYTES]
                buffer, arrived = backend.download(part, self._pool)
                transfers.append((buffer, len(part), arrived))
                self._pool.grow()
                if len(transfers) == IN_FLIGHT:
                    yield _take_first(transfers)
            while transfers:
                first = _take_first(transfers)
                if not transfers:
                    step.ended.set()  # the last bytes are written while the next block is made
                yield first
        except self._device_errors as error:
            if _is_working(backend, self._device_errors):  # an error of host memory or of another device
                raise
            step.block.error = error
        finally:
            for buffer, _, arrived in transfers:
                try:
                    arrived()
                except self._device_errors:  # bytes may still arrive: the buffer must not be used again
                    buffer.detach()
                    self._lost.append(buffer)
                else:
                    buffer.release()


def _is_working(backend: Backend, device_errors: tuple[type[Exception], ...]) -> bool:
    """Return True if synchronizing with the device raises none of its errors."""
    try:
        backend.synchronize()
    except device_errors:
        return False
    return True


def _take_first(transfers: deque[_Transfer]) -> tuple[Buffer, int]:
    """Wait until the first buffer is filled, remove it from `transfers`, and return it with its number of bytes."""
    buffer, size, arrived = transfers[0]
    arrived()
    transfers.popleft()  # not earlier: until then the caller releases the buffer after an error
    return buffer, size


def _sorting(sink: ByteSink) -> SortedOutput:
    if not isinstance(sink, SortedOutput):
        raise TypeError(f"{sink.name} sorts nothing")
    return sink
