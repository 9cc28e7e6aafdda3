"""The devices of a search: those that fail are left out, and the others do their work."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

from readmap.backend import Backend


class Devices:
    """The devices by their places, from 0 on; the first one has what is sorted or compressed on a device."""

    def __init__(self, backends: Sequence[Backend], warn: Callable[[str], None], at_once: int) -> None:
        """warn: hears of a device that has failed. at_once: chunks that each maps."""
        self.backends, self.at_once = tuple(backends), at_once
        self._warn = warn
        self._working = list(range(len(backends)))
        self._lock = threading.Lock()

    @property
    def first(self) -> Backend:
        """That of the first place."""
        return self.backends[0]

    @property
    def places(self) -> Sequence[int]:
        """Those of devices that have not failed."""
        return self._working

    @property
    def places_of_chunks(self) -> list[int]:
        """That of each thread that maps chunks: first one on each device, then others, as many as a device has."""
        return [*self.places] * self.at_once

    @property
    def concurrent_chunks(self) -> int:
        """Of all of them together."""
        return self.at_once * len(self.backends)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What is raised where one of them fails."""
        return tuple({error for backend in self.backends for error in backend.device_errors})

    @contextlib.contextmanager
    def using(self, place: int) -> Iterator[None]:
        """Have the calling thread use a device, by a stream of its own."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.backends[place].thread_stream())
            yield
            if place not in self._working:
                stack.pop_all()  # its stream would raise again what has been told

    def leave(self, place: int, error: Exception) -> int:
        """Leave out a device that has failed, by an error; the place of another, or the error where none is left."""
        with self._lock:
            if place in self._working:
                self._working = [other for other in self._working if other != place]
                if self._working:
                    name = self.backends[place].name
                    self._warn(f"{name} has failed and is left out, others map its reads: {error}")
            if not self._working:
                raise error
            return self._working[place % len(self._working)]


def describe_device(backend: Backend) -> str:
    """Return the name of a device; for the CPU with the number of its threads if there are several."""
    return f"cpu with {backend.threads} threads" if backend.name == "cpu" and backend.threads > 1 else backend.name


def describe_devices(backends: Sequence[Backend]) -> str:
    """Return the names of devices that work together, separated by commas."""
    return ", ".join(map(describe_device, backends))
