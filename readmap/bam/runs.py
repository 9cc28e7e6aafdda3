"""Sorted runs of records: in memory as far as it reaches, then in a file each; and any part of them, in order.

memory    | run 0 | run 1 | run 2 |  free   |      full: merged into one run of a file
file      | 0, 1 and 2 in order             |
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from readmap.backend.buffers import Buffer, BufferPool, Bytes, ClosedError
from readmap.backend.cpu import CpuBackend
from readmap.backend.sorting import sort_pairs
from readmap.bam.memory import Memory
from readmap.bam.order import gather_into
from readmap.formats.faults import naming

Keys = NDArray[np.uint64]
Places = NDArray[np.int64]
Number = TypeVar("Number", np.uint64, np.int64)

#: Records between two of a run that may begin a piece.
STEP = 256

#: Bytes of records that are merged together, by one thread. With less memory pieces are a part of it.
MOST_PIECE, LEAST_PIECE, PIECES_IN_MEMORY = 32 << 20, 1 << 20, 32

#: Threads that merge, a piece each, and buffers beside theirs: for pieces that are being written.
MERGERS, WRITTEN = 4, 2

#: A key and an end.
SIDE_BYTES = 16


@dataclass(frozen=True)
class Run:
    """Records in order.

    Attributes:
        keys: uint64 [records], ascending. ends: int64 [records], where each ends, from the run's first byte on.
        begin: where its first byte lies in the memory of all runs, or in its file.
        file: its path; None in memory.
    """

    keys: Keys
    ends: Places
    begin: int
    file: Path | None = None

    def start(self, record: int) -> int:
        """Where a record begins, or what is behind the last one."""
        return int(self.ends[record - 1]) if record else 0


@dataclass(frozen=True)
class Piece:
    """Records in order, of all runs together.

    Attributes:
        buffer: whose first bytes are theirs, to be released. keys: of each. ends: int64, where each ends.
    """

    buffer: Buffer
    keys: Keys
    ends: Places

    @property
    def bytes(self) -> Bytes:
        """Of the records, one behind the other."""
        return self.buffer.data[: self.ends[-1]]


class Runs:
    """Runs that are added one by one and then merged. What memory does not hold goes to files of a folder."""

    def __init__(self, memory: int, folder: Callable[[], Path], backend: CpuBackend) -> None:
        """memory: most bytes of the runs in memory. folder: where files are made; asked for when the first one is."""
        self.spilled_bytes = 0
        self._most = memory
        self._memory = Memory()
        self._piece_bytes = min(max(memory // PIECES_IN_MEMORY, LEAST_PIECE), MOST_PIECE)
        self._folder = folder
        self._backend = backend
        self._copiers = ThreadPoolExecutor(backend.threads, "readmap-runs")
        self._mergers = ThreadPoolExecutor(min(MERGERS, backend.threads), "readmap-merge")
        # A merger computes alone: threads that share a piece wait for each other more than they compute.
        self._alone = CpuBackend(1)
        self._pieces = BufferPool(backend.host_buffer, 0, MERGERS + WRITTEN)
        self._gathered = BufferPool(backend.host_buffer, 0, MERGERS)
        self._runs: list[Run] = []
        self._used = self._filled = 0
        self._scratch: Path | None = None
        self._lock, self._is_closed = threading.Lock(), False

    @property
    def records(self) -> int:
        """Of all runs."""
        return sum(len(run.keys) for run in self._runs)

    def add(self, keys: Keys, ends: Places) -> None:
        """Begin a run, of which `fill` brings the bytes; that before is whole. Raises OSError that names a file."""
        if not len(keys):
            return
        size = int(ends[-1])
        with self._open():
            needed, sides = self._used + size, SIDE_BYTES * (len(keys) + self._in_memory())
            if needed + sides > self._most or not self._memory.grow(needed, self._most):
                self._spill()
                if not self._memory.grow(size, self._most):
                    raise MemoryError(f"{size:,} bytes of records that are sorted together")
            self._runs.append(Run(keys, ends, self._used))
            self._used, self._filled = self._used + size, self._used

    def fill(self, data: Bytes) -> None:
        """The next bytes of the run that was added last."""
        with self._open():
            self._copy(data, self._memory.bytes[self._filled : self._filled + len(data)])
            self._filled += len(data)

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        """Meanwhile nothing is closed; raises ClosedError where all has been."""
        with self._lock:
            if self._is_closed:
                raise ClosedError
            yield

    def _spill(self) -> None:
        """Merge the runs in memory into one of a file."""
        held = [run for run in self._runs if run.file is None]
        if not held:
            return
        self._scratch = self._scratch or self._folder()
        path = self._scratch / f"{len(self._runs) - len(held)}.run"
        keys, ends, size = [], [], 0
        with naming(str(path)), open(path, "xb", buffering=0) as file:
            for piece in self._merged(held):
                _write(piece.bytes, file)
                keys.append(piece.keys)
                ends.append(piece.ends + size)
                size += int(piece.ends[-1])
                piece.buffer.release()
        mapped = Run(
            _in_file(path, "keys", np.concatenate(keys)), _in_file(path, "ends", np.concatenate(ends)), 0, path
        )
        self._runs = [*(run for run in self._runs if run.file is not None), mapped]
        self.spilled_bytes += size
        self._used = 0

    def merged(self) -> Iterator[Piece]:
        """All records in order, in pieces, of which each is to be released; the next ones are merged meanwhile."""
        return self._merged(self._runs)

    def close(self) -> None:
        """End the threads, and let go of the memory; another thread that adds to it ends at its next piece."""
        self._is_closed = True
        self._pieces.close()
        self._gathered.close()
        with self._lock:
            self._mergers.shutdown(cancel_futures=True)
            self._copiers.shutdown()
            self._runs = []
            self._memory.close()

    def _in_memory(self) -> int:
        return sum(len(run.keys) for run in self._runs if run.file is None)

    def _merged(self, runs: list[Run]) -> Iterator[Piece]:
        if not runs:
            return
        begins = np.zeros(len(runs), np.int64)
        coming: deque[Future[Piece]] = deque()
        for cut in [*_cuts(runs, self._piece_bytes), np.array([len(run.keys) for run in runs])]:
            if (cut > begins).any():
                coming.append(self._mergers.submit(self._piece, runs, begins, cut))
            begins = cut
            if len(coming) > MERGERS:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()

    def _piece(self, runs: list[Run], begins: Places, ends: Places) -> Piece:
        """Some records of each run, merged."""
        parts = [(run, int(begin), int(end)) for run, begin, end in zip(runs, begins, ends, strict=True) if end > begin]
        keys = np.concatenate([run.keys[begin:end] for run, begin, end in parts])
        lengths = np.concatenate([np.diff(run.ends[begin:end], prepend=run.start(begin)) for run, begin, end in parts])
        keys, order = self._in_order(keys)
        with self._source(parts) as (source, offsets):
            starts = np.concatenate(
                [run.ends[begin:end] + offset for (run, begin, end), offset in zip(parts, offsets, strict=True)]
            )
            buffer = self._pieces.take(int(lengths.sum()))
            placed = gather_into(buffer.data, source, starts - lengths, lengths, order, self._alone)
        return Piece(buffer, keys, placed)

    @contextlib.contextmanager
    def _source(self, parts: list[tuple[Run, int, int]]) -> Iterator[tuple[Bytes, list[int]]]:
        """Bytes that hold the parts of all runs, and what is to be added to a place in a run for that in them."""
        if all(run.file is None for run, _, _ in parts):
            yield self._memory.bytes, [run.begin for run, _, _ in parts]
            return
        bounds = [(run.start(begin), int(run.ends[end - 1])) for run, begin, end in parts]
        buffer = self._gathered.take(sum(end - begin for begin, end in bounds))
        try:
            offsets, at = [], 0
            for (run, _, _), (begin, end) in zip(parts, bounds, strict=True):
                target = buffer.data[at : at + end - begin]
                if run.file is not None:
                    _read(run.file, begin, target)
                else:
                    target[:] = self._memory.bytes[run.begin + begin : run.begin + end]
                offsets.append(at - begin)
                at += end - begin
            yield buffer.data, offsets
        finally:
            buffer.release()

    def _in_order(self, keys: Keys) -> tuple[Keys, NDArray[np.uint32]]:
        """The keys in order, and their numbers beside them; equal ones as they stand, by runs."""
        low, count = keys.min(), len(keys)
        bits = int(keys.max() - low).bit_length()
        numbers = np.arange(count, dtype=np.uint32)
        scratch = np.empty(count, np.uint64), np.empty(count, np.uint32)
        found, order = sort_pairs(keys - low, numbers, *scratch, bits, self._alone)
        return found + low, order

    def _copy(self, source: Bytes, target: Bytes) -> None:
        """Copy bytes to others, of the same number, by all threads."""
        size = max(len(source) // self._backend.threads, 1 << 20)

        def copy(begin: int) -> None:
            target[begin : begin + size] = source[begin : begin + size]

        for _ in self._copiers.map(copy, range(0, len(source), size)):
            pass


def _in_file(path: Path, name: str, values: NDArray[Number]) -> NDArray[Number]:
    """The values in a file beside a run's, mapped."""
    side = path.with_suffix(f".{name}")
    with naming(str(side)), open(side, "xb", buffering=0) as file:
        _write(values, file)
        return np.memmap(side, values.dtype, "r")


def _write(values: NDArray[Any], file: io.FileIO) -> None:
    """Write all of them. NumPy's own way would not say what is wrong."""
    view = values.reshape(-1).view(np.uint8).data
    while view:
        view = view[file.write(view) :]


def _read(path: Path, begin: int, target: Bytes) -> None:
    """Fill the target with bytes of a file. Raises OSError that names it, EOFError where they end before."""
    with naming(str(path)), open(path, "rb", buffering=0) as file:
        view = target.data
        while view:
            count = os.preadv(file.fileno(), [view], begin)
            if not count:
                raise EOFError(f"{path}: expected {len(target):,} bytes from {begin:,} on, found fewer")
            view, begin = view[count:], begin + count


def _cuts(runs: list[Run], most: int) -> Iterator[Places]:
    """Between pieces of about `most` bytes: how many records of each run are before.

    A cut is at a record of one run: before it are what has a smaller key and, of equal keys, what stands before it.
    """
    numbers = [np.arange(0, len(run.keys), STEP) for run in runs]
    keys = np.concatenate([run.keys[at] for run, at in zip(runs, numbers, strict=True)])
    owners = np.repeat(np.arange(len(runs)), [len(at) for at in numbers])
    sizes = np.concatenate(
        [np.diff([*(run.start(int(i)) for i in at), int(run.ends[-1])]) for run, at in zip(runs, numbers, strict=True)]
    )
    within = np.concatenate(numbers)
    order = np.lexsort((within, owners, keys))
    before = np.cumsum(sizes[order]) - sizes[order]
    firsts = np.flatnonzero(np.diff(before // most)) + 1
    for first in order[firsts]:
        key, owner = keys[first], owners[first]
        yield np.array(
            [
                within[first]
                if number == owner
                else np.searchsorted(run.keys, key, "right" if number < owner else "left")
                for number, run in enumerate(runs)
            ],
            np.int64,
        )
