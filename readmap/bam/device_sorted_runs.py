"""Sorted runs of records in the memory of a device: all of them in order, in pieces that lie there too.

runs      | run 0 | run 1 | run 2 |           as they come from the mappers
order     keys of all, sorted: which record of which run is next
pieces    | a piece |  one behind the other, gathered from the runs
"""

from __future__ import annotations

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

_APPEND, _CUT, _GATHER = (
    Kernel("bam/order", "append_run"),
    Kernel("bam/order", "cut_pieces"),
    Kernel("bam/order", "gather_piece"),
)

_WRITTEN = constant("bam/order.cu", "WRITTEN")

#: Bytes of a piece.
PIECE_BYTES = 64 << 20

#: Threads that gather a piece each, and buffers of the host for pieces that leave the device.
GATHERERS, BUFFERS = 8, 12

#: Memory of the device that a record takes beside its bytes: key and end, and while all are ordered keys, numbers and
#: lengths twice, address, end and mark.
RECORD_OVERHEAD_BYTES = 73


@dataclass(frozen=True)
class DevicePiece(Generic[Measured]):
    """Records in order.

    Attributes:
        bytes: uint8, of the records, one behind the other: on the device, or in a buffer of the host.
        release: to be called when they have been read. seen: what was asked for of them.
    """

    bytes: Array
    release: Callable[[], None]
    measured: Measured


@dataclass(frozen=True)
class OrderedRecords:
    """The records of some runs, which stay where they are.

    Attributes:
        keys: uint64 [records], ascending. ends: int64 [records], where each ends, one behind the other.
        order: uint32 [records], the number of each among the runs' records, of which addresses, uint64, lengths,
            int64, and marks, uint8, are those [records]. runs: in whose memory they lie. marking: what is marked.
    """

    keys: Array
    ends: Array
    order: Array
    addresses: Array
    lengths: Array
    marks: Array
    runs: list[SortedRecords]
    marking: Marking


class DeviceRuns:
    """Runs that are held on a device, and the threads that bring their records in order."""

    def __init__(self, backend: Backend, contigs: int, most: int | None, reserved: int) -> None:
        """contigs: of the header. most: bytes of the runs that are held; None for what the device has. reserved: bytes
        of its memory that others need."""
        self.backend = backend
        self._contigs, self._most, self._reserved = contigs, most, reserved
        self._room: int | None = None
        self._threads = ThreadPoolExecutor(GATHERERS, "readmap-gather", backend.use_thread_stream)
        self._buffers = BufferPool(backend.host_buffer, 0, BUFFERS)
        self._runs: list[SortedRecords] = []
        self._held = 0

    def add(self, run: SortedRecords) -> bool:
        """Hold a run; False where there is no room, and others are held that would make some."""
        if self._room is None:
            self._room = self._free_room()
        size = len(run.bytes) + RECORD_OVERHEAD_BYTES * len(run.ends)
        if self._runs and self._held + size > self._room:
            return False
        self._runs.append(run)
        self._held += size
        return True

    def take(self) -> list[SortedRecords]:
        """The runs, which are not held here any more."""
        runs, self._runs, self._held = self._runs, [], 0
        return runs

    def sort(self, runs: list[SortedRecords], marking: Marking) -> OrderedRecords:
        """The records of some runs in order, those of equal keys as they came, but for what is left out."""
        backend, total = self.backend, sum(len(run.ends) for run in runs)
        keys, addresses = backend.empty(total, np.uint64), backend.empty(total, np.uint64)
        lengths, numbers = backend.empty(total, np.int64), backend.empty(total, np.uint32)
        marks = backend.empty(total, np.uint8)
        end = 0
        for run in runs:
            first, end = end, end + len(run.ends)
            own = {"all_keys": keys[first:end], "addresses": addresses[first:end], "lengths": lengths[first:end]}
            own |= {"numbers": numbers[first:end], "marks": marks[first:end]}
            given = {"bytes": run.bytes, "keys": run.keys, "ends": run.ends, "marking": marking}
            backend.launch(_APPEND, len(run.ends), **given, **own, first=first, contigs=self._contigs)
        scratch = backend.empty(total, np.uint64), backend.empty(total, np.uint32)
        bits = POSITION_BITS + (self._contigs + 1).bit_length()
        keys, order = sort_pairs(keys, numbers, *scratch, bits, backend)
        if marking.is_removed:
            written = count_flagged(marks, _WRITTEN, backend)
            keys, order = keys[:written], order[:written]
        ends = backend.inclusive_sum(permute_lengths(lengths, order, backend))
        return OrderedRecords(keys, ends, order, addresses, lengths, marks, runs, marking)

    def pieces(self, ordered: OrderedRecords, measure: Callable[..., Measured], fetched: bool) -> Iterator[DevicePiece[Measured]]:
        """All records in pieces, of which each is to be released; the next ones are gathered meanwhile.

        measure: is asked of each piece: its bytes, where its records end, what is in front of them there, and the backend,
        on whose device all is. fetched: into the host's memory.
        """
        backend, records = self.backend, len(ordered.ends)
        size = int(backend.to_host(ordered.ends[-1:])[0]) if records else 0
        cuts = backend.empty((2, -(-size // PIECE_BYTES)), np.int64)
        shape = {"firsts": cuts[0], "origins": cuts[1], "records": records, "piece_bytes": PIECE_BYTES}
        backend.launch(_CUT, cuts.shape[1], ends=ordered.ends, **shape)
        coming: deque[Future[DevicePiece[Measured]]] = deque()
        for cut, following in pairwise([*backend.to_host(cuts).T.tolist(), [records, size]]):
            if following > cut:
                coming.append(self._threads.submit(self._piece, ordered, cut, following, measure, fetched))
            if len(coming) > GATHERERS:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()

    def close(self) -> None:
        """End the threads, and let go of the memory."""
        self._buffers.close()
        self._threads.shutdown(cancel_futures=True)
        self._runs = []

    def _piece(
        self, ordered: OrderedRecords, cut: list[int], following: list[int], measure: Callable[..., Measured], fetched: bool
    ) -> DevicePiece[Measured]:
        """The records from one cut of the order to the next, each the records and the bytes in front of it."""
        backend, (begin, origin), (end, behind) = self.backend, cut, following
        ends, piece = ordered.ends[begin:end], backend.empty(behind - origin, np.uint8)
        given = {"addresses": ordered.addresses, "lengths": ordered.lengths, "order": ordered.order[begin:end]}
        given |= {"marks": ordered.marks, "marking": ordered.marking}
        shape = {"ends": ends, "records": len(ordered.lengths), "origin": origin}
        backend.launch(_GATHER, end - begin, **given, **shape, piece=piece)
        seen = measure(piece, ends, origin, backend)
        if fetched:
            buffer, arrived = backend.download(piece, self._buffers)
            arrived()
            return DevicePiece(buffer.data[: len(piece)], buffer.release, seen)
        backend.synchronize()  # whoever reads it does not wait for this thread's stream
        return DevicePiece(piece, _nothing, seen)

    def _free_room(self) -> int:
        """What is held at most; the rest is for runs that come while these are brought to the host."""
        memory = self.backend.memory()
        free = sys.maxsize if memory is None else max(memory[0] - self._reserved, 0) // 4 * 3
        return free if self._most is None else min(self._most, free)


def _nothing() -> None:
    pass
