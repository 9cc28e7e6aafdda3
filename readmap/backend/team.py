"""Several devices that work together, each driven by a thread of its own unless it is the only device."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np

from readmap.backend.base import Array, Backend
from readmap.backend.devices import Gpus, device_names, open_backend

MAX_PENDING = 3  # tasks queued or finished per device, so that no device waits for the consumer of the results

Result = TypeVar("Result")


class Team:
    """Devices of one kind, by index. A context manager whose exit ends the threads.

    If there are several devices, each has a thread with a stream of its own. The caller may also use the first device
    while that device's thread is idle; their launches do not wait for each other.
    """

    def __init__(self, openers: Sequence[Callable[[], Backend]]) -> None:
        """openers: open one device each, called in its thread; the first opener is called in the caller's thread."""
        self._threads = [ThreadPoolExecutor(1, "device") for _ in openers] if len(openers) > 1 else []
        try:
            others = [thread.submit(opener) for thread, opener in zip(self._threads[1:], openers[1:], strict=True)]
            self.backends = [openers[0](), *(other.result() for other in others)]
            if self._threads:
                self.map(lambda backend: backend.use_thread_stream(), self.backends)
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(
        cls, device: str = "auto", gpus: Gpus = 1, threads: int | None = None, memory_limit: int | None = None
    ) -> Team:
        """Open the devices chosen by device_names(device, gpus); threads, memory_limit: for open_backend."""
        return cls([partial(open_backend, name, threads, memory_limit) for name in device_names(device, gpus)])

    @classmethod
    def of(cls, *backends: Backend) -> Team:
        """Make a team of open devices. If there are several, nobody else may use them until the team is closed."""
        return cls([lambda backend=backend: backend for backend in backends])  # type: ignore[misc]

    def __len__(self) -> int:
        return len(self.backends)

    @property
    def first(self) -> Backend:
        return self.backends[0]

    def submit(self, index: int, work: Callable[[], Result]) -> Future[Result]:
        """Run a function in the thread of device `index`, after earlier ones; a single device runs it in the caller."""
        if self._threads:
            return self._threads[index].submit(work)
        done: Future[Result] = Future()
        done.set_result(work())
        return done

    def map(self, work: Callable[..., Result], *columns: Iterable[Any]) -> list[Result]:
        """Call work(*row) for device i with row i of the columns, all devices at once; return the results in order.

        Rows may be fewer than devices. With several devices all launched kernels have ended on return. Raises the
        first error as soon as a device fails; the other devices finish their calls.
        """
        rows = enumerate(zip(*columns, strict=False))
        calls = [self.submit(index, partial(self._call_and_synchronize, index, work, row)) for index, row in rows]
        return await_all(calls, calls)

    def _call_and_synchronize(self, index: int, work: Callable[..., Result], row: tuple[Any, ...]) -> Result:
        """Return work(*row); if there are several devices, first wait for device `index`."""
        try:
            return work(*row)
        finally:
            if self._threads:
                # Also after a failure: kernels may still read other devices' arrays, which are about to be freed.
                self.backends[index].synchronize()

    def run_tasks(self, works: Iterable[Callable[[Backend], Result]]) -> Iterator[Result]:
        """Yield work(backend) of all works in order, each run by the least busy device. Raises any error at once."""
        pending: deque[tuple[int, Future[Result]]] = deque()
        max_pending = MAX_PENDING * len(self) if self._threads else 1
        try:
            for work in works:
                busy = [index for index, future in pending if not future.done()]
                index = min(range(len(self)), key=busy.count)
                pending.append((index, self.submit(index, partial(work, self.backends[index]))))
                if len(pending) == max_pending:
                    yield _pop_first(pending)
            while pending:
                yield _pop_first(pending)
        finally:
            cancel(future for _, future in pending)

    def gather(self, parts: Sequence[Array]) -> Array:
        """Concatenate parts, one per device, on the first device; return a single part as it is."""
        if len(parts) == 1:
            return parts[0]
        whole, end = self.first.empty(sum(map(len, parts)), parts[0].dtype), 0
        for part in parts:
            start, end = end, end + len(part)
            self.first.copy_into(whole[start:end], part)
        self.first.synchronize()
        return whole

    def to_host(self, parts: Sequence[Array]) -> np.ndarray[Any, Any]:
        """Concatenate parts, one per device, on the host; all devices copy at once."""
        if len(parts) == 1:
            return self.first.to_host(parts[0])
        whole = np.empty(sum(map(len, parts)), parts[0].dtype)
        targets = np.split(whole, np.cumsum([len(part) for part in parts[:-1]]))
        self.map(lambda backend, part, target: backend.copy_to_host(target, part), self.backends, parts, targets)
        return whole

    def release_memory(self) -> None:
        self.map(lambda backend: backend.release_memory(), self.backends)

    def close(self) -> None:
        """Cancel calls that have not started, and end the threads."""
        for thread in self._threads:
            thread.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def await_all(wanted: Iterable[Future[Result]], pending: Iterable[Future[Result]]) -> list[Result]:
    """Return the results of `wanted`; raise the first error in `pending`, which includes `wanted`, at once."""
    wanted, pending = list(wanted), list(pending)
    while not all(future.done() for future in wanted) and not _failed(pending):
        wait([future for future in pending if not future.done()], return_when=FIRST_COMPLETED)
    return [future.result() for future in _failed(pending) or wanted]


def cancel(futures: Iterable[Future[Result]]) -> None:
    """Cancel calls that have not started, and wait for running calls: they use arrays that the caller frees."""
    wait([future for future in list(futures) if not future.cancel()])


def _failed(futures: Iterable[Future[Result]]) -> list[Future[Result]]:
    return [future for future in futures if future.done() and future.exception()]


def _pop_first(pending: deque[tuple[int, Future[Result]]]) -> Result:
    """Remove the first (device index, future) and return its result; raise any pending future's error at once."""
    (result,) = await_all([pending[0][1]], [future for _, future in pending])
    pending.popleft()
    return result
