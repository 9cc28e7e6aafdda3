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
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from readmap.backend.base import Kernel
from readmap.backend.buffers import Buffer, BufferPool, Bytes, ClosedError
from readmap.backend.cpu import CpuBackend
from readmap.bam.marking import Marking, no_marking
from readmap.bam.memory import Memory
from readmap.formats.file_errors import file_name_context

#: uint64, or NumPy's bytes.
Keys = NDArray[Any]
Places = NDArray[np.int64]
Measured = TypeVar("Measured")

#: What is asked for of some records, by the thread that merges them: their bytes, and where each ends.
Measure = Callable[[Bytes, Places], Measured]

_MERGE = Kernel("bam/merging", "merge_records")

#: Records between two of a run that may begin a piece.
STEP = 256

#: Bytes of records that are merged together, by one thread. With less memory pieces are a part of it.
MAX_PIECE, MIN_PIECE, PIECES_IN_MEMORY = 32 << 20, 1 << 20, 128

#: Threads that merge at most, a piece each, and buffers beside theirs: for pieces that are being written.
MERGERS, WRITTEN = 12, 10

#: Of the place where a record ends.
PLACE_BYTES = 8


@dataclass(frozen=True)
class Run:
    """Records in order.

    Attributes:
        keys: of each, ascending. offsets: int64 [records + 1], where each begins, and the last one ends, from
            the run's first byte on.
        begin: where its first byte lies in the memory of all runs, or in its file.
        file: its path; None in memory.
    """

    keys: Keys
    offsets: Places
    begin: int
    file: Path | None = None


@dataclass(frozen=True)
class Piece(Generic[Measured]):
    """Records in order, of all runs together.

    Attributes:
        buffer: whose first bytes are theirs, to be released. keys: of each. ends: int64, where each ends.
        seen: what was asked for of them; None where there are none.
    """

    buffer: Buffer
    keys: Keys
    ends: Places
    measured: Measured | None

    @property
    def bytes(self) -> Bytes:
        """Of the records, one behind the other."""
        return self.buffer.data[: self.ends[-1]]

    @property
    def release(self) -> Callable[[], None]:
        """To be called when the bytes have been read."""
        return self.buffer.release


class SortedRuns:
    """SortedRuns that are added one by one and then merged. What memory does not hold goes to files of a folder."""

    def __init__(
        self,
        memory: int,
        folder: Callable[[], Path],
        backend: CpuBackend,
        buffer: Callable[[int], Bytes] | None = None,
    ) -> None:
        """memory: most bytes of the runs in memory. folder: where files are made; asked for when the first one is.

        buffer: allocates uint8 [nbytes] for pieces; None takes the backend's.
        """
        self.spilled_bytes = 0
        self._most = memory
        self._memory = Memory()
        self._piece_bytes = min(max(memory // PIECES_IN_MEMORY, MIN_PIECE), MAX_PIECE)
        self._folder = folder
        self._backend = backend
        self._copiers = ThreadPoolExecutor(backend.threads, "readmap-runs")
        self._most_merged = min(MERGERS, backend.threads)
        self._mergers = ThreadPoolExecutor(self._most_merged, "readmap-merge")
        # A merger computes alone: threads that share a piece wait for each other more than they compute.
        self._alone = CpuBackend(1)
        self._pieces = BufferPool(buffer or backend.host_buffer, 0, self._most_merged + WRITTEN)
        self._gathered = BufferPool(backend.host_buffer, 0, self._most_merged)
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
            needed = self._used + size
            sides = (keys.itemsize + PLACE_BYTES) * (len(keys) + self._in_memory())
            if needed + sides > self._most or not self._memory.grow(needed, self._most):
                self._spill()
                if not self._memory.grow(size, self._most):
                    raise MemoryError(f"{size:,} bytes of records that are sorted together")
            self._runs.append(Run(keys, np.concatenate([[0], ends]), self._used))
            self._used, self._filled = self._used + size, self._used

    def add_file(self, run: Run) -> None:
        """Another run, which lies in a file."""
        if len(run.keys):
            self._runs.append(run)

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
        keys, offsets, size = [], [np.zeros(1, np.int64)], 0
        with file_name_context(str(path)), open(path, "xb", buffering=0) as file:
            for piece in self._merged(held, no_marking(self._alone), measure_nothing):
                _write(piece.bytes, file)
                keys.append(piece.keys)
                offsets.append(piece.ends + size)
                size += int(piece.ends[-1])
                piece.buffer.release()
        sides = _in_file(path, "keys", np.concatenate(keys)), _in_file(path, "offsets", np.concatenate(offsets))
        mapped = Run(*sides, 0, path)
        self._runs = [*(run for run in self._runs if run.file is not None), mapped]
        self.spilled_bytes += size
        self._used = 0

    def merged(self, measure: Measure[Measured], marking: Marking | None = None) -> Iterator[Piece[Measured]]:
        """All records in order, in pieces, of which each is to be released; the next ones are merged meanwhile.

        marking: of the host; None for none.
        """
        return self._merged(self._runs, marking or no_marking(self._alone), measure)

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

    def _merged(self, runs: list[Run], marking: Marking, measure: Measure[Measured]) -> Iterator[Piece[Measured]]:
        if not runs:
            return
        begins = np.zeros(len(runs), np.int64)
        coming: deque[Future[Piece[Measured]]] = deque()
        for cut in [*_cuts(runs, self._piece_bytes), np.array([len(run.keys) for run in runs])]:
            if (cut > begins).any():
                coming.append(self._mergers.submit(self._piece, runs, begins, cut, marking, measure))
            begins = cut
            if len(coming) > self._most_merged:
                yield from _with_records(coming.popleft().result())
        while coming:
            yield from _with_records(coming.popleft().result())

    def _piece(self, runs: list[Run], begins: Places, ends: Places, marking: Marking, measure: Measure[Measured]) -> Piece[Measured]:
        """Some records of each run, merged and marked."""
        parts = [(run, int(begin), int(end)) for run, begin, end in zip(runs, begins, ends, strict=True) if end > begin]
        # SortedRuns of names have keys of other sizes.
        dtype = np.result_type(*(run.keys for run, _, _ in parts))
        held = [np.ascontiguousarray(run.keys[begin:end], dtype) for run, begin, end in parts]
        records, key_bytes = sum(map(len, held)), dtype.itemsize
        size = sum(int(run.offsets[end] - run.offsets[begin]) for run, begin, end in parts)
        size += records * marking.max_growth
        keys, placed, written = np.empty(records, dtype), np.empty(records, np.int64), np.empty(1, np.int64)
        with self._source(parts) as base_addresses:
            buffer = self._pieces.take(size)
            self._alone.launch(
                _MERGE,
                1,
                next_keys=np.array([one.ctypes.data for one in held], np.uint64),
                next_offsets=np.array([_address(run.offsets, begin) for run, begin, _ in parts], np.uint64),
                last_keys=np.array([one.ctypes.data + one.nbytes for one in held], np.uint64),
                base_addresses=np.array(base_addresses, np.uint64),
                heap=np.empty(len(parts), np.int32),
                marking=marking,
                merged=buffer.data[:size],
                keys=keys.view(np.uint8),
                ends=placed,
                written=written,
                parts=len(parts),
                room=size,
                records=records,
                key_bytes=key_bytes,
                are_numbers=int(dtype == np.uint64),
            )
        keys, placed = keys[: written[0]], placed[: written[0]]
        return Piece(buffer, keys, placed, measure(buffer.data[: placed[-1]], placed) if len(placed) else None)

    @contextlib.contextmanager
    def _source(self, parts: list[tuple[Run, int, int]]) -> Iterator[list[int]]:
        """Addresses from which the bytes of each run are counted; those of the parts are in memory."""
        if all(run.file is None for run, _, _ in parts):
            yield [_address(self._memory.bytes, run.begin) for run, _, _ in parts]
            return
        bounds = [(int(run.offsets[begin]), int(run.offsets[end])) for run, begin, end in parts]
        buffer = self._gathered.take(sum(end - begin for begin, end in bounds))
        try:
            addresses, at = [], 0
            for (run, _, _), (begin, end) in zip(parts, bounds, strict=True):
                target = buffer.data[at : at + end - begin]
                if run.file is not None:
                    _read(run.file, begin, target)
                else:
                    target[:] = self._memory.bytes[run.begin + begin : run.begin + end]
                addresses.append((_address(buffer.data, at) - begin) % (1 << 64))
                at += end - begin
            yield addresses
        finally:
            buffer.release()

    def _copy(self, source: Bytes, target: Bytes) -> None:
        """Copy bytes to others, of the same number, by all threads."""
        size = max(len(source) // self._backend.threads, 1 << 20)

        def copy(begin: int) -> None:
            target[begin : begin + size] = source[begin : begin + size]

        for _ in self._copiers.map(copy, range(0, len(source), size)):
            pass


def _with_records(piece: Piece[Measured]) -> Iterator[Piece[Measured]]:
    """The piece, or none where all of its records are left out."""
    if len(piece.ends):
        yield piece
    else:
        piece.release()


def _address(values: NDArray[Any], at: int) -> int:
    """Where one of some values, or what is behind them, lies."""
    return int(values.ctypes.data) + at * values.itemsize


def measure_nothing(*_: object) -> None:
    """What is seen of records of which nobody asks anything."""


def _in_file(path: Path, name: str, values: NDArray[Any]) -> NDArray[Any]:
    """The values in a file beside a run's, mapped."""
    side = path.with_suffix(f".{name}")
    with file_name_context(str(side)), open(side, "xb", buffering=0) as file:
        _write(values, file)
        return np.memmap(side, values.dtype, "r")


def _write(values: NDArray[Any], file: io.FileIO) -> None:
    """Write all of them. NumPy's own way would not say what is wrong."""
    view = values.reshape(-1).view(np.uint8).data
    while view:
        view = view[file.write(view) :]


def _read(path: Path, begin: int, target: Bytes) -> None:
    """Fill the target with bytes of a file. Raises OSError that names it, EOFError where they end before."""
    with file_name_context(str(path)), open(path, "rb", buffering=0) as file:
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
        [np.diff(run.offsets[np.append(at, len(run.keys))]) for run, at in zip(runs, numbers, strict=True)]
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
