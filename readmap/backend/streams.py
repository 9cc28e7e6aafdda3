"""Streams of a device, which threads take over from each other.

What is let go of on a stream is taken again on that alone. So a thread leaves its stream, and with it that memory, to
the next one of its kind: else each task of a cluster's worker would take more of the device.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Stream = TypeVar("Stream")


class Streams(Generic[Stream]):
    """One for each thread that wants one."""

    def __init__(self, make: Callable[[], Stream]) -> None:
        """make: a new one, where no thread has left any."""
        self._make = make
        self._left: dict[str, deque[Stream]] = {}
        self._thread = threading.local()

    def own(self) -> Stream:
        """The calling thread's, until that ends."""
        if not hasattr(self._thread, "held"):
            # Threads of a kind have one name but for their numbers.
            left = self._left.setdefault(threading.current_thread().name.rstrip("-_0123456789"), deque())
            try:
                stream = left.pop()
            except IndexError:
                stream = self._make()
            self._thread.held = _Held(stream, left)
        held: _Held[Stream] = self._thread.held
        return held.stream

    @contextlib.contextmanager
    def lent(self) -> Iterator[Stream]:
        """The calling thread's, which it leaves to others afterwards if it had none before."""
        had_one, stream = hasattr(self._thread, "held"), self.own()
        try:
            yield stream
        finally:
            if not had_one:
                del self._thread.held


class _Held(Generic[Stream]):
    """A stream of a thread, which that leaves with this object."""

    def __init__(self, stream: Stream, left: deque[Stream]) -> None:
        """left: where it is to be found then."""
        self.stream, self._left = stream, left

    def __del__(self) -> None:
        self._left.append(self.stream)
