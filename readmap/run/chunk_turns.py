"""The order of chunks that several threads map at once, and of searches that share a device.

Out of turn a thread computes, with memory that an earlier chunk may need. In turn it estimates, counts and writes.
After memory has run out once, chunks are mapped one at a time (serial mode).
"""

import threading
import time
from collections.abc import Callable


class Stopped(Exception):
    """The run has ended before the chunk's turn came."""


class Preempted(Exception):
    """An earlier chunk needs the memory: what has been computed is dropped, and computed again in turn."""


class ChunkTurns:
    """The order of chunks, by their index from 0. serial: no chunk is mapped out of turn."""

    def __init__(self, serial: bool = False) -> None:
        self._changed = threading.Condition()
        self._current = 0
        self._active: set[int] = set()
        self._is_serial = serial
        self._is_stopped = False

    def stop(self) -> None:
        """End the run: raise Stopped in every thread that waits, now or later."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def start(self, chunk_index: int) -> None:
        """Register a chunk that will hold device memory; in serial mode, first wait for its turn. Raises Stopped."""
        self._wait(lambda: not self._is_serial or self._current == chunk_index)
        with self._changed:
            self._active.add(chunk_index)

    def wait(self, chunk_index: int) -> None:
        """Wait until all earlier chunks have ended. Raises Stopped, and Preempted if serial mode begins before that."""
        self._wait(lambda: self._is_serial or self._current == chunk_index)
        if self._current != chunk_index:
            raise Preempted

    def release_and_wait(self, chunk_index: int) -> None:
        """Declare that a chunk holds no device memory; wait until all earlier chunks have ended. Raises Stopped."""
        with self._changed:
            self._active.discard(chunk_index)
            self._changed.notify_all()
        self._wait(lambda: self._current == chunk_index)

    def wait_exclusive(self, chunk_index: int) -> bool:
        """Wait until no other chunk holds device memory, then run all later chunks one at a time. Return True if
        another chunk may have been holding memory. Raises Stopped and Preempted."""
        self.wait(chunk_index)
        with self._changed:
            were_others, self._is_serial = not self._is_serial, True
            self._changed.notify_all()
        self._wait(lambda: self._active <= {chunk_index})
        return were_others

    def end(self, chunk_index: int) -> None:
        """Wait for the turn of a chunk that is done, and start the turn of the next chunk. Raises Stopped."""
        self.release_and_wait(chunk_index)
        with self._changed:
            self._current += 1
            self._changed.notify_all()

    def _wait(self, until: Callable[[], bool]) -> None:
        """Wait until `until()` is true, which is checked at each change; raise Stopped if the run ends or has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or until())
            if self._is_stopped:
                raise Stopped


class ChunkTurn:
    """The turn of one chunk; waited: seconds that its thread waited for the turn."""

    def __init__(self, turns: ChunkTurns, chunk_index: int) -> None:
        self.waited = 0.0
        self._turns = turns
        self._chunk_index = chunk_index

    def wait(self) -> None:
        start = time.perf_counter()
        self._turns.wait(self._chunk_index)
        self.waited += time.perf_counter() - start

    def wait_exclusive(self) -> bool:
        """Wait for the turn after memory has run out, and until no other chunk holds memory. Return True if more memory
        may be free now. Raises Stopped and Preempted."""
        return self._turns.wait_exclusive(self._chunk_index)


def exclusive_turn() -> ChunkTurn:
    """Return the turn of a batch that runs alone."""
    return ChunkTurn(ChunkTurns(serial=True), 0)


class DeviceLease:
    """What a search waits for and what it releases; this class is for a search that has its devices alone."""

    def is_ahead(self) -> bool:
        """Return True if another search still uses the device, so that nobody waits for this one's first reads."""
        return False

    def wait_for_device(self) -> None:
        """Wait until no other search uses the device, and let this search use it."""

    def end_reading(self) -> None:
        """Let the next search read: all reads of this one have been read."""

    def release_device(self) -> None:
        """Let the next search use the device. Each thread that has no reads left to map calls this."""
