"""Sorted runs in the memory of a device -> all records in order, in pieces on the device.

runs      | run 0 | run 1 | run 2 |           as the mappers produce them
order     keys of all records, sorted, with the index of each record
pieces    | piece | piece |  copied from the runs in this order
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.buffers import BufferPool
from readmap.backend.compaction import count_flagged
from readmap.backend.compilation.declarations import constant
from readmap.backend.radix_sort import sort_pairs
from readmap.bam.marking import Marking
from readmap.bam.order import POSITION_BITS, SortedRecords, permute_lengths
from readmap.bam.sorted_runs import Measured

_APPEND, _CUT, _GATHER = (Kernel("bam/order", name) for name in ("append_run", "cut_pieces", "gather_piece"))

_WRITTEN = constant("bam/order.cu", "WRITTEN")
#: Approximate bytes of a piece.
PIECE_BYTES = 64 << 20
#: Threads that gather one piece each, and host buffers for pieces that are copied to the host.
GATHERERS, BUFFERS = 8, 12
#: Device memory per record in addition to its bytes: key and end, and while records are sorted keys, indices and
#: lengths twice, address, end and mark.
RECORD_OVERHEAD_BYTES = 73


@dataclass(frozen=True)
class DevicePiece(Generic[Measured]):
    """A piece of the sorted records, uint8, on the device or in a host buffer; `release` is called after reading."""

    bytes: Array
    release: Callable[[], None]
    measured: Measured


@dataclass(frozen=True)
class OrderedRecords:
    """The order of the records of some runs, which stay in place."""

    keys: Array  # uint64 [records], ascending
    ends: Array  # int64 [records], where each record ends in the sorted output
    order: Array  # uint32 [records], the index of each sorted record in the next three arrays
    addresses: Array  # uint64 [all records]
    lengths: Array  # int64 [all records]
    marks: Array  # uint8 [all records]
    runs: list[SortedRecords]  # keep the memory of the records alive
    marking: Marking


class DeviceRuns:
    """Sorted runs on a device, and the threads that gather their records in order."""

    def __init__(self, backend: Backend, contigs: int, max_bytes: int | None, reserved: int) -> None:
        """max_bytes: limit of the runs; None for all device memory except `reserved` bytes."""
        self.backend = backend
        self._contigs, self._max_bytes, self._reserved = contigs, max_bytes, reserved
        self._capacity: int | None = None
        self._threads = ThreadPoolExecutor(GATHERERS, "readmap-gather", backend.use_thread_stream)
        self._buffers = BufferPool(backend.host_buffer, 0, BUFFERS)
        self._runs: list[SortedRecords] = []
        self._used = 0

    def add(self, run: SortedRecords) -> bool:
        """Add a run; return False, without adding it, if there is no space and other runs could be taken."""
        if self._capacity is None:
            self._capacity = self._compute_capacity()
        size = len(run.bytes) + RECORD_OVERHEAD_BYTES * len(run.ends)
        if self._runs and self._used + size > self._capacity:
            return False
        self._runs.append(run)
        self._used += size
        return True

    def take(self) -> list[SortedRecords]:
        """Remove and return the runs."""
        runs, self._runs, self._used = self._runs, [], 0
        return runs

    def sort(self, runs: list[SortedRecords], marking: Marking) -> OrderedRecords:
        """Compute the sorted order of the records of some runs, stably, without duplicates that `marking` removes."""
        backend, total = self.backend, sum(len(run.ends) for run in runs)
        keys, addresses = backend.empty(total, np.uint64), backend.empty(total, np.uint64)
        lengths, indices = backend.empty(total, np.int64), backend.empty(total, np.uint32)
        marks = backend.empty(total, np.uint8)
        end = 0
        for run in runs:
            first, end = end, end + len(run.ends)
            own = {"all_keys": keys[first:end], "addresses": addresses[first:end], "lengths": lengths[first:end]}
            own |= {"indices": indices[first:end], "marks": marks[first:end]}
            inputs = {"bytes": run.bytes, "keys": run.keys, "ends": run.ends, "marking": marking}
            backend.launch(_APPEND, len(run.ends), **inputs, **own, first=first, contigs=self._contigs)
        scratch = backend.empty(total, np.uint64), backend.empty(total, np.uint32)
        bits = POSITION_BITS + (self._contigs + 1).bit_length()
        keys, order = sort_pairs(keys, indices, *scratch, bits, backend)
        if marking.is_removed:
            written = count_flagged(marks, _WRITTEN, backend)
            keys, order = keys[:written], order[:written]
        ends = backend.inclusive_sum(permute_lengths(lengths, order, backend))
        return OrderedRecords(keys, ends, order, addresses, lengths, marks, runs, marking)

    def pieces(
        self, ordered: OrderedRecords, measure: Callable[..., Measured], to_host: bool
    ) -> Iterator[DevicePiece[Measured]]:
        """Yield all records in pieces, while threads gather the next ones; each piece has to be released.

        measure: called with (bytes, ends, bytes before, backend) of each piece. to_host: copy pieces to host memory.
        """
        backend, records = self.backend, len(ordered.ends)
        size = int(backend.to_host(ordered.ends[-1:])[0]) if records else 0
        cuts = backend.empty((2, -(-size // PIECE_BYTES)), np.int64)
        shape = {"firsts": cuts[0], "origins": cuts[1], "records": records, "piece_bytes": PIECE_BYTES}
        backend.launch(_CUT, cuts.shape[1], ends=ordered.ends, **shape)
        pending: deque[Future[DevicePiece[Measured]]] = deque()
        for bounds in pairwise([*backend.to_host(cuts).T.tolist(), [records, size]]):
            if bounds[1] > bounds[0]:
                pending.append(self._threads.submit(self._gather_piece, ordered, bounds, measure, to_host))
            if len(pending) > GATHERERS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

    def close(self) -> None:
        self._buffers.close()
        self._threads.shutdown(cancel_futures=True)
        self._runs = []

    def _gather_piece(
        self, ordered: OrderedRecords, cuts: tuple[list[int], ...], measure: Callable[..., Measured], to_host: bool
    ) -> DevicePiece[Measured]:
        """Gather and measure the records between two cuts; a cut is (records, bytes) before it."""
        backend, ((start, origin), (end, end_offset)) = self.backend, cuts
        ends, piece = ordered.ends[start:end], backend.empty(end_offset - origin, np.uint8)
        inputs = {"addresses": ordered.addresses, "lengths": ordered.lengths, "order": ordered.order[start:end]}
        inputs |= {"marks": ordered.marks, "marking": ordered.marking}
        shape = {"ends": ends, "records": len(ordered.lengths), "origin": origin}
        backend.launch(_GATHER, end - start, **inputs, **shape, piece=piece)
        measured = measure(piece, ends, origin, backend)
        if to_host:
            buffer, arrived = backend.download(piece, self._buffers)
            arrived()
            return DevicePiece(buffer.data[: len(piece)], buffer.release, measured)
        backend.synchronize()  # the reader does not wait for this thread's stream
        return DevicePiece(piece, lambda: None, measured)

    def _compute_capacity(self) -> int:
        """Return the maximum bytes of the runs; a quarter of free memory is left for runs added during a move."""
        memory = self.backend.memory()
        free = sys.maxsize if memory is None else max(memory[0] - self._reserved, 0) // 4 * 3
        return free if self._max_bytes is None else min(self._max_bytes, free)
