"""An output that sorts its records: runs are added, and at the end all records are written in order.

device    | run 0 | run 1 | run 2 |      when full: moved to host memory, in order, as one run
memory    | 0, 1 and 2 in order   |      when full: merged into one run in a file
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
from readmap.bam.sorted_runs import Keys, Offsets, Piece, SortedRuns, measure_nothing
from readmap.formats.atomic_files import temporary_folder
from readmap.formats.bgzf import BgzfOutput, BlockOutput
from readmap.formats.output import ByteSink, open_output
from readmap.formats.samtools import INDEX_ENDINGS
from readmap.formats.wording import format_bytes


@dataclass(frozen=True)
class BamIndex:
    """The index to write together with a BAM file; lengths: contig lengths; bam: output of the BAM file."""

    lengths: list[int]
    format: IndexFormat
    bam: BlockOutput


class ShowStep(Protocol):
    """Shows what is being done; bar: share of it that is done, if known."""

    def __call__(self, text: str, *, bar: float | None = None) -> None: ...


class Observer(Protocol):
    """Collects information about all written records."""

    def measure(self, records: Array, ends: Array, origin: int = 0, backend: Backend | None = None) -> Any:
        """Compute, in any thread, what is to be collected from a piece of the records, uint8.

        ends: int64, where each record ends, relative to the first plus `origin`. backend: has them; None: the host.
        """

    def accumulate(self, measured: Any) -> None:
        """Add the result of `measure` for the next piece; pieces come in order."""


def scratch_folder(path: str) -> str:
    """Return the folder for records that do not fit in memory: $TMPDIR, or the folder of the output."""
    return os.environ.get("TMPDIR") or os.path.dirname(os.path.realpath(path))


def add_run(run: SortedRecords, output: SortedOutput, backend: Backend) -> None:
    """Add a run on a device to an output, copied to the host if the output does not accept it."""
    if output.from_device:
        backend.synchronize()
        output.add_device_run(run, lambda: None)
    else:
        output.begin_run(host_keys(run, backend), backend.to_host(run.ends))
        output.write(backend.to_host(run.bytes))


class SortedOutput(ByteSink):
    """Accepts a header, then sorted runs of records, and writes all records in order to another output."""

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
        """memory: bytes for runs; the others go to files in $TMPDIR or the folder of the output. buffer: allocates
        uint8 [nbytes] that the output reads fastest. device: keeps runs before they are moved to the host. marker:
        marks duplicates; records have fragment IDs. observers: in addition to the index."""
        self.name, self.from_device = output.name, device is not None
        self._device = device
        self._marker, self._observers = marker, observers
        self._moving: Future[None] | None = None
        self._backend = backend
        self._output = output
        self._index = index
        self._header_bytes = self._record_bytes = 0
        self._is_header = True
        self._is_finished = False
        self._index_output: ByteSink | None = None
        with contextlib.ExitStack() as resources:
            self._runs = SortedRuns(memory, self._folder, backend, buffer)
            resources.callback(self._runs.close)
            if device is not None:
                resources.callback(device.close)
                # Mapping continues while runs are moved to the host.
                self._mover = ThreadPoolExecutor(1, "readmap-move")
                resources.callback(self._mover.shutdown)
            if index is not None:
                plain = resources.enter_context(open_output(f"{self.name}.{index.format}"))
                # One thread: a CSI index has less than a megabyte.
                is_csi = index.format is IndexFormat.CSI
                self._index_output = resources.enter_context(BgzfOutput(plain, 1)) if is_csi else plain
            self._resources = resources.pop_all()

    def begin_run(self, keys: Keys, ends: Offsets) -> None:
        """Start a run with keys and ends as in SortedRecords; `write` adds its bytes. Raises OSError."""
        self._is_header = False
        self._runs.add(keys, ends)

    def add_device_run(self, run: SortedRecords, release: Callable[[], None]) -> None:
        """Add a run on the device, after moving others to the host if it is full; call `release`. Raises OSError."""
        if self._device is None:
            raise TypeError(f"{self.name} keeps no runs on a device")
        self._is_header = False
        if len(run.ends) and not self._device.add(run):
            self._start_move()
            self._device.add(run)
        self._record_bytes += len(run.bytes)
        release()

    def _start_move(self) -> None:
        """Let a thread move the runs on the device to the host, as one run; first wait for an earlier move."""
        if self._device is not None and (runs := self._device.take()):
            self._wait_for_move()
            self._moving = self._mover.submit(self._move_to_host, self._device, runs)

    def _wait_for_move(self) -> None:
        if self._moving is not None:
            self._moving.result()

    def _move_to_host(self, device: DeviceRuns, runs: list[SortedRecords]) -> None:
        """Sort the runs on the device, and add their records to the host's runs as one run."""
        backend = device.backend
        with backend.thread_stream():
            ordered = device.sort(runs, no_marking(backend))
            self._runs.add(backend.to_host(ordered.keys), backend.to_host(ordered.ends))
            for piece in device.pieces(ordered, measure_nothing, to_host=True):
                self._runs.fill(piece.bytes)
                piece.release()

    def write(self, data: memoryview | bytes | NDArray[np.uint8]) -> None:
        """Append to the header, before the first run, or to the current run."""
        if not self._is_header:
            self._runs.fill(np.frombuffer(data, np.uint8))
            self._record_bytes += len(data)
            return
        self._header_bytes += len(data)
        self._output.write(data)

    def finish(self, show: ShowStep = lambda text, **_: None) -> None:
        """Write all records in order and the index; finish the outputs. show: reports progress. Raises OSError."""
        if self._is_finished:
            return
        written, total = 0, max(self._record_bytes, 1)
        index = self._index and FileIndex(self._index.lengths, self._index.format, self._header_bytes)
        observers: list[Observer] = [*([index] if index else []), *self._observers]

        def measure(*records: Any) -> list[Any]:
            return [observer.measure(*records) for observer in observers]

        with self._pieces(measure, show) as pieces:
            for piece in pieces:
                share = min(written / total, 1.0)
                show(f"writing sorted records, {share:.0%} of {format_bytes(total)}", bar=share)
                written += len(piece.bytes)
                for observer, measured in zip(observers, piece.measured or [], strict=True):
                    observer.accumulate(measured)
                self._output.write_borrowed(piece.bytes, piece.release)
        show("finishing the output", bar=1.0)
        self._output.finish()
        if index and self._index and self._index_output:
            self._index_output.write(index.write(self._index.bam.block_sizes))
            self._index_output.finish()
        self._is_finished = True

    def commit(self) -> None:
        """Finish, remove old indexes of the file, rename output and index to their paths, and free the runs."""
        self.finish()
        for ending in INDEX_ENDINGS:  # of a file that the output replaces
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.name + ending)
        self._output.commit()
        if self._index_output:
            self._index_output.commit()
        self._resources.close()

    def abort(self) -> None:
        self._runs.close()
        if self._device is not None:
            self._device.close()
        self._resources.close()
        self._output.abort()

    @contextlib.contextmanager
    def _pieces(self, measure: Callable[..., Any], show: ShowStep) -> Iterator[Iterator[Piece[Any] | DevicePiece[Any]]]:
        """Yield an iterator of all records in order: from the device if all runs are there, else from the host."""
        device = self._device
        if device is not None and self._moving is None:
            with device.backend.thread_stream():
                marking = self._marking(device.backend, show)
                show("sorting records")
                ordered = device.sort(device.take(), marking)
                yield device.pieces(ordered, measure, to_host=not self._output.from_device)
        else:
            show("sorting records")
            self._start_move()
            self._wait_for_move()
            yield self._runs.merged(measure, self._marking(self._backend, show))

    def _marking(self, backend: Backend, show: ShowStep) -> Marking:
        """Return the function that marks duplicates in records on `backend`, or `no_marking` without a marker."""
        if self._marker is None:
            return no_marking(backend)
        show("marking duplicates")
        return self._marker.marking(backend)

    def _folder(self) -> Path:
        """Create the folder for files of records, which is removed at the end."""
        target = os.path.realpath(self.name)
        return self._resources.enter_context(temporary_folder(target, scratch_folder(self.name)))
