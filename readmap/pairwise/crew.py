"""Devices that work together, each in a thread of its own unless it is alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Self, TypeVar

from readmap.backend import Backend

#: Pieces of work that a device has before it or ready, so that none waits for whoever takes what comes out.
AHEAD = 3

Made = TypeVar("Made")


class Crew:
    """The devices, by their numbers from 0. A context manager, which drops what has not begun and ends the threads."""

    def __init__(self, backends: Sequence[Backend]) -> None:
        """backends: of different devices; of several, nobody else uses one until the end."""
        self.backends = backends
        self._threads: list[ThreadPoolExecutor] = []
        if len(backends) > 1:
            self._threads = [ThreadPoolExecutor(1, "readmap-device", each.keep_own_stream) for each in backends]

    def __len__(self) -> int:
        return len(self.backends)

    def do(self, number: int, work: Callable[[], Made]) -> Future[Made]:
        """Have a device's thread do something, once it has done what it was asked for before."""
        if self._threads:
            return self._threads[number].submit(work)
        done: Future[Made] = Future()
        done.set_result(work())
        return done

    def each(self, work: Callable[[Backend], Made]) -> list[Made]:
        """What every device makes. Raises what the first one raises that fails."""
        made = [self.do(number, partial(work, backend)) for number, backend in enumerate(self.backends)]
        wait(made, return_when=FIRST_EXCEPTION)
        return [future.result() for future in failed(made) or made]

    def divide(self, works: Iterable[Callable[[Backend], Made]]) -> Iterator[Made]:
        """What comes of pieces of work, in their order; each is done by whichever device has least before it.

        Raises what the first one raises that fails.
        """
        pending: deque[tuple[int, Future[Made]]] = deque()
        most = AHEAD * len(self) if self._threads else 1
        try:
            for work in works:
                busy = [number for number, future in pending if not future.done()]
                number = min(range(len(self)), key=busy.count)
                pending.append((number, self.do(number, partial(work, self.backends[number]))))
                if len(pending) == most:
                    yield _first(pending)
            while pending:
                yield _first(pending)
        finally:
            cancel(future for _, future in pending)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.shutdown(cancel_futures=True)


def failed(futures: Iterable[Future[Made]]) -> list[Future[Made]]:
    """Those that have raised something."""
    return [future for future in futures if future.done() and future.exception()]


def await_all(wanted: Iterable[Future[Made]], pending: Iterable[Future[Made]]) -> list[Made]:
    """The results of some of what is under way. Raises what any of it raises, as soon as it does."""
    wanted, pending = list(wanted), list(pending)
    while not all(future.done() for future in wanted) and not failed(pending):
        wait([future for future in pending if not future.done()], return_when=FIRST_COMPLETED)
    return [future.result() for future in failed(pending) or wanted]


def cancel(futures: Iterable[Future[Made]]) -> None:
    """Drop what has not begun, and wait for what has: it uses arrays that the caller drops."""
    wait([future for future in list(futures) if not future.cancel()])


def _first(pending: deque[tuple[int, Future[Made]]]) -> Made:
    """The result of the first one, which is taken away. Raises what any of them raises."""
    (found,) = await_all([pending[0][1]], [future for _, future in pending])
    pending.popleft()
    return found
