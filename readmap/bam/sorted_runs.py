"""Sorted runs of records, in memory and then in files -> all records in order, in pieces.

memory    | run 0 | run 1 | run 2 |  free   |      when full: merged into one run in a file
file      | 0, 1 and 2 in order             |
"""

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
from readmap.bam.memory import GrowableBuffer
from readmap.formats.file_errors import file_name_context
from readmap.formats.wording import format_bytes

#: Keys of records: uint64, or NumPy bytes.
Keys = NDArray[Any]
Offsets = NDArray[np.int64]
Measured = TypeVar("Measured")
#: Called by the merging thread for each piece: (bytes, ends) of its records -> a result for the consumer.
Measure = Callable[[Bytes, Offsets], Measured]

_MERGE = Kernel("bam/merging", "merge_records")
#: A piece may start at every STEP-th record of a run.
STEP = 256
#: Maximum and minimum bytes of a piece, which one thread merges, and the number of pieces that little memory is split
#: into.
MAX_PIECE, MIN_PIECE, PIECES_IN_MEMORY = 32 << 20, 1 << 20, 128
#: Maximum merging threads, and buffers, in addition to one a thread, for pieces that are being written.
MAX_MERGERS, EXTRA_BUFFERS = 12, 10


@dataclass(frozen=True)
class Run:
    """A sorted run of records."""

    keys: Keys  # ascending
    offsets: Offsets  # [records + 1], start of each record and end of the last
    start: int  # offset of the run in the memory of all runs, or in its file
    file: Path | None = None  # None in memory


@dataclass(frozen=True)
class Piece(Generic[Measured]):
    """A piece of the merged records."""

    buffer: Buffer  # has the records at its start; to be released
    keys: Keys
    ends: Offsets  # where each record ends
    measured: Measured | None  # result of the `measure` callback; None without records

    @property
    def bytes(self) -> Bytes:
        return self.buffer.data[: self.ends[-1]]

    @property
    def release(self) -> Callable[[], None]:
        return self.buffer.release


class SortedRuns:
    """Runs that are added and then merged. Runs that do not fit in memory are written to files."""

    def __init__(
        self,
        memory: int,
        folder: Callable[[], Path],
        backend: CpuBackend,
        buffer: Callable[[int], Bytes] | None = None,
    ) -> None:
        """memory: maximum bytes of the runs in memory. folder: returns the folder for files, called for the first file.
        buffer: allocates uint8 [nbytes] for pieces; default: the backend's."""
        self.spilled_bytes = 0
        self._max_bytes = memory
        self._memory = GrowableBuffer()
        self._piece_bytes = min(max(memory // PIECES_IN_MEMORY, MIN_PIECE), MAX_PIECE)
        self._folder = folder
        self._backend = backend
        self._copiers = ThreadPoolExecutor(backend.threads, "readmap-runs")
        self._max_mergers = min(MAX_MERGERS, backend.threads)
        self._mergers = ThreadPoolExecutor(self._max_mergers, "readmap-merge")
        # One thread a piece: threads that share a piece wait for each other more than they compute.
        self._single = CpuBackend(1)
        self._pieces = BufferPool(buffer or backend.host_buffer, 0, self._max_mergers + EXTRA_BUFFERS)
        self._gathered = BufferPool(backend.host_buffer, 0, self._max_mergers)
        self._runs: list[Run] = []
        self._used = self._filled = 0
        self._scratch: Path | None = None
        self._lock, self._is_closed = threading.Lock(), False

    @property
    def records(self) -> int:
        return sum(len(run.keys) for run in self._runs)

    def add(self, keys: Keys, ends: Offsets) -> None:
        """Start a run, whose bytes follow by `fill`; the run before is complete. Raises OSError that names a file."""
        if not len(keys):
            return
        size = int(ends[-1])
        with self._prevent_close():
            needed = self._used + size
            in_memory = sum(len(run.keys) for run in self._runs if run.file is None)
            overhead = (keys.itemsize + 8) * (len(keys) + in_memory)  # keys and offsets of 8 bytes
            if needed + overhead > self._max_bytes or not self._memory.grow(needed, self._max_bytes):
                self._spill()
                if not self._memory.grow(size, self._max_bytes):
                    raise MemoryError(f"{format_bytes(size)} of records that are sorted together")
            self._runs.append(Run(keys, np.concatenate([[0], ends]), self._used))
            self._used, self._filled = self._used + size, self._used

    def add_file(self, run: Run) -> None:
        """Add a run that is in a file."""
        if len(run.keys):
            self._runs.append(run)

    def fill(self, data: Bytes) -> None:
        """Append bytes to the run that was added last."""
        with self._prevent_close():
            self._copy_with_threads(data, self._memory.bytes[self._filled : self._filled + len(data)])
            self._filled += len(data)

    @contextlib.contextmanager
    def _prevent_close(self) -> Iterator[None]:
        """Prevent `close` in the context. Raises ClosedError if it has been called."""
        with self._lock:
            if self._is_closed:
                raise ClosedError
            yield

    def _spill(self) -> None:
        """Merge the runs in memory into one run in a file."""
        in_memory = [run for run in self._runs if run.file is None]
        if not in_memory:
            return
        self._scratch = self._scratch or self._folder()
        path = self._scratch / f"{len(self._runs) - len(in_memory)}.run"
        keys, offsets, size = [], [np.zeros(1, np.int64)], 0
        with file_name_context(str(path)), open(path, "xb", buffering=0) as file:
            for piece in self._merge_runs(in_memory, no_marking(self._single), measure_nothing):
                _write_all(piece.bytes, file)
                keys.append(piece.keys)
                offsets.append(piece.ends + size)
                size += int(piece.ends[-1])
                piece.buffer.release()
        mapped_keys = _write_mapped(path, "keys", np.concatenate(keys))
        mapped = Run(mapped_keys, _write_mapped(path, "offsets", np.concatenate(offsets)), 0, path)
        self._runs = [*(run for run in self._runs if run.file is not None), mapped]
        self.spilled_bytes += size
        self._used = 0

    def merged(self, measure: Measure[Measured], marking: Marking | None = None) -> Iterator[Piece[Measured]]:
        """Yield all records in pieces, which threads merge ahead; each piece has to be released."""
        return self._merge_runs(self._runs, marking or no_marking(self._single), measure)

    def close(self) -> None:
        """End the threads and release the memory; a thread that is adding a run gets ClosedError at its next call."""
        self._is_closed = True
        self._pieces.close()
        self._gathered.close()
        with self._lock:
            self._mergers.shutdown(cancel_futures=True)
            self._copiers.shutdown()
            self._runs = []
            self._memory.close()

    def _merge_runs(self, runs: list[Run], marking: Marking, measure: Measure[Measured]) -> Iterator[Piece[Measured]]:
        """Yield all records of `runs` in order, in pieces, which threads merge and measure ahead."""
        if not runs:
            return
        starts = np.zeros(len(runs), np.int64)
        pending: deque[Future[Piece[Measured]]] = deque()
        for cut in [*_piece_cuts(runs, self._piece_bytes), np.array([len(run.keys) for run in runs])]:
            if (cut > starts).any():
                pending.append(self._mergers.submit(self._merge_piece, runs, starts, cut, marking, measure))
            starts = cut
            if len(pending) > self._max_mergers:
                yield from _with_records(pending.popleft().result())
        while pending:
            yield from _with_records(pending.popleft().result())

    def _merge_piece(
        self, runs: list[Run], starts: Offsets, ends: Offsets, marking: Marking, measure: Measure[Measured]
    ) -> Piece[Measured]:
        """Merge, mark and measure the records [starts[i], ends[i]) of each run i."""
        parts = [(run, int(start), int(end)) for run, start, end in zip(runs, starts, ends, strict=True) if end > start]
        # SortedRuns of names have keys of other sizes.
        dtype = np.result_type(*(run.keys for run, _, _ in parts))
        part_keys = [np.ascontiguousarray(run.keys[start:end], dtype) for run, start, end in parts]
        records = sum(map(len, part_keys))
        size = sum(int(run.offsets[end] - run.offsets[start]) for run, start, end in parts)
        size += records * marking.max_growth
        merged_keys, merged_ends = np.empty(records, dtype), np.empty(records, np.int64)
        written = np.empty(1, np.int64)
        with self._load_parts(parts) as base_addresses:
            buffer = self._pieces.take(size)
            addresses = {
                "next_keys": [keys.ctypes.data for keys in part_keys],
                "last_keys": [keys.ctypes.data + keys.nbytes for keys in part_keys],
                "next_offsets": [_address(run.offsets, start) for run, start, _ in parts],
                "base_addresses": base_addresses,
            }
            inputs = {name: np.array(values, np.uint64) for name, values in addresses.items()}
            outputs = {"merged": buffer.data[:size], "keys": merged_keys.view(np.uint8), "ends": merged_ends}
            outputs |= {"written": written, "heap": np.empty(len(parts), np.int32)}
            shape = {"parts": len(parts), "capacity": size, "records": records, "key_bytes": dtype.itemsize}
            are_numbers = int(dtype == np.uint64)
            self._single.launch(_MERGE, 1, **inputs, **outputs, **shape, marking=marking, are_numbers=are_numbers)
        merged_keys, merged_ends = merged_keys[: written[0]], merged_ends[: written[0]]
        measured = measure(buffer.data[: merged_ends[-1]], merged_ends) if len(merged_ends) else None
        return Piece(buffer, merged_keys, merged_ends, measured)

    @contextlib.contextmanager
    def _load_parts(self, parts: list[tuple[Run, int, int]]) -> Iterator[list[int]]:
        """Load the records of (run, start, end); yield the address to which each run's offsets are relative."""
        if all(run.file is None for run, _, _ in parts):
            yield [_address(self._memory.bytes, run.start) for run, _, _ in parts]
            return
        bounds = [(int(run.offsets[start]), int(run.offsets[end])) for run, start, end in parts]
        buffer = self._gathered.take(sum(end - start for start, end in bounds))
        try:
            addresses, filled = [], 0
            for (run, _, _), (start, end) in zip(parts, bounds, strict=True):
                target = buffer.data[filled : filled + end - start]
                if run.file is not None:
                    _read_range(run.file, start, target)
                else:
                    target[:] = self._memory.bytes[run.start + start : run.start + end]
                addresses.append((_address(buffer.data, filled) - start) % (1 << 64))
                filled += end - start
            yield addresses
        finally:
            buffer.release()

    def _copy_with_threads(self, source: Bytes, target: Bytes) -> None:
        """Copy bytes, with all threads."""
        size = max(len(source) // self._backend.threads, 1 << 20)

        def copy(start: int) -> None:
            target[start : start + size] = source[start : start + size]

        for _ in self._copiers.map(copy, range(0, len(source), size)):
            pass


def _with_records(piece: Piece[Measured]) -> Iterator[Piece[Measured]]:
    """Yield the piece if it has records, else release it: all may have been dropped."""
    if len(piece.ends):
        yield piece
    else:
        piece.release()


def _address(values: NDArray[Any], index: int) -> int:
    """Return the address of an element, or of the end of an array."""
    return int(values.ctypes.data) + index * values.itemsize


def measure_nothing(*_: object) -> None:
    """A measure callback without a result."""


def _write_mapped(path: Path, name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Write an array to a file next to a run's file, and map it."""
    array_path = path.with_suffix(f".{name}")
    with file_name_context(str(array_path)), open(array_path, "xb", buffering=0) as file:
        _write_all(values, file)
        return np.memmap(array_path, values.dtype, "r")


def _write_all(values: NDArray[Any], file: io.FileIO) -> None:
    """Write all values; unlike NumPy's tofile, an error has its errno."""
    view = values.reshape(-1).view(np.uint8).data
    while view:
        view = view[file.write(view) :]


def _read_range(path: Path, start: int, target: Bytes) -> None:
    """Fill `target` from an offset of a file. Raises OSError that names the file, EOFError if it is too short."""
    with file_name_context(str(path)), open(path, "rb", buffering=0) as file:
        view = target.data
        while view:
            count = os.preadv(file.fileno(), [view], start)
            if not count:
                raise EOFError(f"{path}: expected {len(target):,} bytes at offset {start:,}, found fewer")
            view, start = view[count:], start + count


def _piece_cuts(runs: list[Run], piece_bytes: int) -> Iterator[Offsets]:
    """Yield the cuts between pieces of about `piece_bytes`: for each run, the number of records before the cut.

    A cut is at a record of one run. Before it are the records with smaller keys and, for equal keys, the records of
    earlier runs and earlier records of the same run.
    """
    candidates = [np.arange(0, len(run.keys), STEP) for run in runs]
    keys = np.concatenate([run.keys[at] for run, at in zip(runs, candidates, strict=True)])
    owners = np.repeat(np.arange(len(runs)), [len(at) for at in candidates])
    sizes = np.concatenate(
        [np.diff(run.offsets[np.append(at, len(run.keys))]) for run, at in zip(runs, candidates, strict=True)]
    )
    within = np.concatenate(candidates)
    order = np.lexsort((within, owners, keys))
    before = np.cumsum(sizes[order]) - sizes[order]
    firsts = np.flatnonzero(np.diff(before // piece_bytes)) + 1
    for first in order[firsts]:
        key, owner = keys[first], owners[first]
        earlier = [np.searchsorted(run.keys, key, "right") for run in runs[:owner]]
        later = [np.searchsorted(run.keys, key, "left") for run in runs[owner + 1 :]]
        yield np.array([*earlier, within[first], *later], np.int64)
