"""An output whose records are sorted on the way: runs come in, and in the end all of them go out in order.

device    | run 0 | run 1 | run 2 |      full: in order to the host's memory, as one run
memory    | 0, 1 and 2 in order   |      full: merged into one run of a file
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend
from readmap.backend.buffers import Bytes
from readmap.backend.cpu import CpuBackend
from readmap.bam.device_sorted_runs import DevicePiece, DeviceRuns
from readmap.bam.file_index import FileIndex, IndexFormat
from readmap.bam.marking import Marker, Marking, no_marking
from readmap.bam.order import SortedRecords, host_keys
from readmap.bam.sorted_runs import Keys, Piece, Places, SortedRuns, measure_nothing
from readmap.formats.atomic_files import temporary_folder
from readmap.formats.bgzf import BgzfOutput, BlockOutput
from readmap.formats.output import ByteSink, open_output
from readmap.formats.samtools_output import INDEX_ENDINGS


@dataclass(frozen=True)
class BamIndex:
    """The index that is made while a BAM file is written.

    Attributes:
        lengths: of the contigs. form: of the index. bam: the file, whose name it gets with an ending.
    """

    lengths: list[int]
    form: IndexFormat
    bam: BlockOutput


class Observer(Protocol):
    """Who hears of all records that are written, in order; what is to be heard of them threads see at once."""

    def measure(self, records: Array, ends: Array, origin: int = 0, backend: Backend | None = None) -> Any:
        """What there is to hear of some records: their bytes, uint8, and where each ends, int64, from `origin` on.

        backend: on which they lie; None for the host.
        """

    def accumulate(self, seen: Any) -> None:
        """Hear of the next records."""


def scratch_folder(path: str) -> str:
    """Where what memory does not hold goes of an output: $TMPDIR, else beside it."""
    return os.environ.get("TMPDIR") or os.path.dirname(os.path.realpath(path))


def add_run(run: SortedRecords, output: SortedOutput, backend: Backend) -> None:
    """Give a run to an output, which may hold it on the device."""
    if output.from_device:
        backend.synchronize()
        output.add_device_run(run, lambda: None)
    else:
        output.begin_run(host_keys(run, backend), backend.to_host(run.ends))
        output.write(backend.to_host(run.bytes))


class SortedOutput(ByteSink):
    """Takes a header, then runs of sorted records, and writes them in order to another output.

    name: what messages call it: the other output's name. from_device: whether runs come by `hold`.
    """

    def __init__(
        self,
        output: ByteSink,
        memory: int,
        index: BamIndex | None,
        backend: CpuBackend,
        buffer: Callable[[int], Bytes] | None = None,
        device: DeviceRuns | None = None,
        marker: Marker | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        """output: committed and aborted with this one. memory: bytes; what it does not hold goes to files in $TMPDIR,
        else beside the output. index: of the output, where it is to have one. buffer: memory, uint8 [nbytes], from
        which the output reads fastest. device: holds runs before memory does. marker: where records have the number of
        their fragment behind them: which are duplicates. observers: beside the index."""
        self.name, self.from_device = output.name, device is not None
        self._device = device
        self._marker, self._observers = marker, observers
        self._moving: Future[None] | None = None
        self._backend = backend
        self._output = output
        self._index = index
        self._header_bytes = 0
        self._is_header = True
        self._is_finished = False
        self._index_output: ByteSink | None = None
        with contextlib.ExitStack() as resources:
            self._runs = SortedRuns(memory, self._folder, backend, buffer)
            resources.callback(self._runs.close)
            if device is not None:
                resources.callback(device.close)
                # Mapping goes on while runs leave the device.
                self._mover = ThreadPoolExecutor(1, "readmap-move")
                resources.callback(self._mover.shutdown)
            if index is not None:
                plain = resources.enter_context(open_output(f"{self.name}.{index.form}"))
                # One thread: CSI is blocked gzip, of less than a megabyte.
                is_csi = index.form is IndexFormat.CSI
                self._index_output = resources.enter_context(BgzfOutput(plain, 1)) if is_csi else plain
            self._resources = resources.pop_all()

    def begin_run(self, keys: Keys, ends: Places) -> None:
        """What is written next are records in order: their keys and where each ends, as SortedRecords has them.

        Raises OSError that names a file for which there is no room.
        """
        self._is_header = False
        self._runs.add(keys, ends)

    def add_device_run(self, run: SortedRecords, release: Callable[[], None]) -> None:
        """Take a run on the device; `release` is called when there is room for another one.

        Raises OSError that names a file for which there is no room.
        """
        if self._device is None:
            raise TypeError(f"{self.name} holds nothing on a device")
        self._is_header = False
        if len(run.ends) and not self._device.add(run):
            self._move()
            self._device.add(run)
        release()

    def _move(self) -> None:
        """Have the runs on the device become one of the host, once those before have."""
        if self._device is not None and (runs := self._device.take()):
            self._moved()
            self._moving = self._mover.submit(self._bring, self._device, runs)

    def _moved(self) -> None:
        """Wait until what leaves the device has left it."""
        if self._moving is not None:
            self._moving.result()

    def _bring(self, device: DeviceRuns, runs: list[SortedRecords]) -> None:
        backend = device.backend
        with backend.thread_stream():
            ordered = device.sort(runs, no_marking(backend))
            self._runs.add(backend.to_host(ordered.keys), backend.to_host(ordered.ends))
            for piece in device.pieces(ordered, measure_nothing, fetched=True):
                self._runs.fill(piece.bytes)
                piece.release()

    def write(self, data: memoryview | bytes | NDArray[np.uint8]) -> None:
        """The header, before any run, or the next bytes of a run."""
        if not self._is_header:
            self._runs.fill(np.frombuffer(data, np.uint8))
            return
        self._header_bytes += len(data)
        self._output.write(data)

    def finish(self) -> None:
        """Writes all records in order, the index too. Raises OSError that names the output, or a file of records."""
        if self._is_finished:
            return
        index = self._index and FileIndex(self._index.lengths, self._index.form, self._header_bytes)
        observers: list[Observer] = [*([index] if index else []), *self._observers]

        def measure(*records: Any) -> list[Any]:
            return [observer.measure(*records) for observer in observers]

        with self._pieces(measure) as pieces:
            for piece in pieces:
                for observer, seen in zip(observers, piece.measured or [], strict=True):
                    observer.accumulate(seen)
                self._output.write_borrowed(piece.bytes, piece.release)
        self._output.finish()
        if index and self._index and self._index_output:
            self._index_output.write(index.write(self._index.bam.block_sizes))
            self._index_output.finish()
        self._is_finished = True

    def commit(self) -> None:
        """Writes all records, and gives the output, then its index, their names. Raises OSError as `finish` does."""
        self.finish()
        for ending in INDEX_ENDINGS:  # of what the output replaces
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.name + ending)
        self._output.commit()
        if self._index_output:
            self._index_output.commit()
        self._resources.close()

    def abort(self) -> None:
        """Aborts the other output, and removes the files of records, when no thread makes one any more."""
        self._runs.close()
        if self._device is not None:
            self._device.close()
        self._resources.close()
        self._output.abort()

    @contextlib.contextmanager
    def _pieces(self, measure: Callable[..., Any]) -> Iterator[Iterator[Piece[Any] | DevicePiece[Any]]]:
        """All records in order: from the device, where no others are, else from the host."""
        device = self._device
        if device is not None and self._moving is None:
            with device.backend.thread_stream():
                ordered = device.sort(device.take(), self._marking(device.backend))
                yield device.pieces(ordered, measure, fetched=not self._output.from_device)
        else:
            self._move()
            self._moved()
            yield self._runs.merged(measure, self._marking(self._backend))

    def _marking(self, backend: Backend) -> Marking:
        return self._marker.marking(backend) if self._marker else no_marking(backend)

    def _folder(self) -> Path:
        """A new one for files of records, gone in the end."""
        target = os.path.realpath(self.name)
        return self._resources.enter_context(temporary_folder(target, scratch_folder(self.name)))
