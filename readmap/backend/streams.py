"""CUDA streams that threads of one kind inherit from each other.

CuPy's memory pool reuses freed memory only on the stream that freed it. So a thread leaves its stream, and with it the
memory, to the next thread of its kind. Otherwise every task of a cluster worker would take more device memory.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Stream = TypeVar("Stream")


class Streams(Generic[Stream]):
    """One stream per thread."""

    def __init__(self, make: Callable[[], Stream]) -> None:
        """make: creates a stream if no ended thread has left one."""
        self._make = make
        self._idle: dict[str, deque[Stream]] = {}
        self._thread = threading.local()

    def own(self) -> Stream:
        """Return the calling thread's stream, which it keeps until the thread ends."""
        if not hasattr(self._thread, "owner"):
            # Threads of one kind have the same name except for their numbers.
            idle = self._idle.setdefault(threading.current_thread().name.rstrip("-_0123456789"), deque())
            try:
                stream = idle.pop()
            except IndexError:
                stream = self._make()
            self._thread.owner = _Owner(stream, idle)
        owner: _Owner[Stream] = self._thread.owner
        return owner.stream

    @contextlib.contextmanager
    def borrow(self) -> Iterator[Stream]:
        """Yield the calling thread's stream; on exit leave it to other threads, unless the thread had it before."""
        had_stream, stream = hasattr(self._thread, "owner"), self.own()
        try:
            yield stream
        finally:
            if not had_stream:
                del self._thread.owner


class _Owner(Generic[Stream]):
    """Returns the stream to the idle streams when it is deleted, which happens when its thread ends."""

    def __init__(self, stream: Stream, idle: deque[Stream]) -> None:
        self.stream, self._idle = stream, idle

    def __del__(self) -> None:
        self._idle.append(self.stream)
