"""Several devices that work together, each in a thread of its own unless it is alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np

from readmap.backend.base import Array, Backend
from readmap.backend.select import Gpus, device_names, open_backend

#: Pieces of work that a device has before it or ready, so that none waits for whoever takes what comes out.
AHEAD = 3

Made = TypeVar("Made")


class Team:
    """Devices of one kind, by their numbers from 0. A context manager, which ends the threads.

    Of several each has a thread, with a stream of its own. The caller may use the first one too, while its thread has
    nothing to do; what either launches does not wait for the other's.
    """

    def __init__(self, openers: Sequence[Callable[[], Backend]]) -> None:
        """openers: of each device, called in the thread that will use it; that of the first one in the caller's."""
        self._threads = [ThreadPoolExecutor(1, "device") for _ in openers] if len(openers) > 1 else []
        try:
            others = [thread.submit(opener) for thread, opener in zip(self._threads[1:], openers[1:], strict=True)]
            self.backends = [openers[0](), *(other.result() for other in others)]
            if self._threads:
                self.each(lambda backend: backend.keep_own_stream(), self.backends)
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(
        cls, device: str = "auto", gpus: Gpus = 1, threads: int | None = None, memory_limit: int | None = None
    ) -> Team:
        """The devices of device_names, as open_backend opens each."""
        return cls([partial(open_backend, name, threads, memory_limit) for name in device_names(device, gpus)])

    @classmethod
    def of(cls, *backends: Backend) -> Team:
        """Devices that are open; of several nobody else uses one until the end."""
        return cls([lambda backend=backend: backend for backend in backends])  # type: ignore[misc]

    def __len__(self) -> int:
        return len(self.backends)

    @property
    def first(self) -> Backend:
        """The first device."""
        return self.backends[0]

    def do(self, number: int, work: Callable[[], Made]) -> Future[Made]:
        """Have a device's thread do something, once it has done what it was asked for before."""
        if self._threads:
            return self._threads[number].submit(work)
        done: Future[Made] = Future()
        done.set_result(work())
        return done

    def each(self, work: Callable[..., Made], *columns: Iterable[Any]) -> list[Made]:
        """What the devices make, each by its row of the columns, all at once; the first ones where rows are fewer.

        Of several devices all that was launched has ended. Raises what any of them raises, as soon as it does: the
        others end their work.
        """
        rows = enumerate(zip(*columns, strict=False))
        made = [self.do(number, partial(self._make, number, work, row)) for number, row in rows]
        return await_all(made, made)

    def _make(self, number: int, work: Callable[..., Made], row: tuple[Any, ...]) -> Made:
        try:
            return work(*row)
        finally:
            if self._threads:
                # Also of what fails: it may read other devices' arrays, which are dropped then.
                self.backends[number].synchronize()

    def divide(self, works: Iterable[Callable[[Backend], Made]]) -> Iterator[Made]:
        """What comes of pieces of work, in their order; each is done by whichever device has least before it.

        Raises what any of them raises, as soon as it does.
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

    def gather(self, parts: Sequence[Array]) -> Array:
        """Parts of an array, one a device, behind each other on the first device; a single part itself."""
        if len(parts) == 1:
            return parts[0]
        whole, end = self.first.empty(sum(map(len, parts)), parts[0].dtype), 0
        for part in parts:
            begin, end = end, end + len(part)
            self.first.put(whole[begin:end], part)
        self.first.synchronize()
        return whole

    def to_host(self, parts: Sequence[Array]) -> np.ndarray[Any, Any]:
        """The same as NumPy's; each device sends its own part."""
        if len(parts) == 1:
            return self.first.to_host(parts[0])
        whole = np.empty(sum(map(len, parts)), parts[0].dtype)
        targets = np.split(whole, np.cumsum([len(part) for part in parts[:-1]]))
        self.each(lambda backend, part, target: backend.receive(target, part), self.backends, parts, targets)
        return whole

    def release_memory(self) -> None:
        """Give back what freed arrays still keep."""
        self.each(lambda backend: backend.release_memory(), self.backends)

    def close(self) -> None:
        """Drop what has not begun, and end the threads."""
        for thread in self._threads:
            thread.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def await_all(wanted: Iterable[Future[Made]], pending: Iterable[Future[Made]]) -> list[Made]:
    """The results of some of what is under way. Raises what any of it raises, as soon as it does."""
    wanted, pending = list(wanted), list(pending)
    while not all(future.done() for future in wanted) and not _failed(pending):
        wait([future for future in pending if not future.done()], return_when=FIRST_COMPLETED)
    return [future.result() for future in _failed(pending) or wanted]


def cancel(futures: Iterable[Future[Made]]) -> None:
    """Drop what has not begun, and wait for what has: it uses arrays that the caller drops."""
    wait([future for future in list(futures) if not future.cancel()])


def _failed(futures: Iterable[Future[Made]]) -> list[Future[Made]]:
    return [future for future in futures if future.done() and future.exception()]


def _first(pending: deque[tuple[int, Future[Made]]]) -> Made:
    """The result of the first one, which is taken away. Raises what any of them raises."""
    (found,) = await_all([pending[0][1]], [future for _, future in pending])
    pending.popleft()
    return found
