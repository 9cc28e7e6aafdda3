"""Several devices that work together, step by step, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np

from readmap.backend.base import Array, Backend
from readmap.backend.select import Gpus, device_names, open_backend

Found = TypeVar("Found")


class Team:
    """Devices of one kind. A context manager, which ends the threads.

    The first device works in the thread that asks, so that one alone works as if there were no team.
    """

    def __init__(self, first: Backend, others: Sequence[Callable[[], Backend]] = ()) -> None:
        """others: what opens each of them; it is called in the thread that will use the device."""
        self.backends = [first]
        self._threads = [ThreadPoolExecutor(1, "device") for _ in others]
        try:
            opening = [thread.submit(_opened, each) for thread, each in zip(self._threads, others, strict=True)]
            self.backends += [backend.result() for backend in opening]
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(
        cls, device: str = "auto", gpus: Gpus = 1, threads: int | None = None, memory_limit: int | None = None
    ) -> Team:
        """The devices of device_names, as open_backend opens each."""
        first, *others = (partial(open_backend, name, threads, memory_limit) for name in device_names(device, gpus))
        return cls(first(), others)

    @property
    def first(self) -> Backend:
        """The first device."""
        return self.backends[0]

    def each(self, work: Callable[..., Found], *columns: Iterable[Any]) -> list[Found]:
        """What the devices find, each by its row of the columns, all at once; the first ones where rows are fewer.

        Where there are several rows, all that was launched has ended. If one device fails, the others end their work,
        and its error is raised.
        """
        rows = list(zip(*columns, strict=False))
        if len(rows) == 1:
            return [work(*rows[0])]
        others = zip(self._threads, self.backends[1:], rows[1:], strict=False)
        running = [thread.submit(_done, backend, work, row) for thread, backend, row in others]
        try:
            found = [_done(self.first, work, rows[0])]
        finally:
            wait(running)
        return found + [one.result() for one in running]

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
        """End the threads."""
        for thread in self._threads:
            thread.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _opened(opens: Callable[[], Backend]) -> Backend:
    backend = opens()
    backend.keep_own_stream()
    return backend


def _done(backend: Backend, work: Callable[..., Found], row: tuple[Any, ...]) -> Found:
    found = work(*row)
    backend.synchronize()
    return found
