"""The devices of a search. A device that fails is excluded, and the others do its work."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

from readmap.backend import Backend


class Devices:
    """The devices of a search by their index; the first device sorts, merges and compresses records."""

    def __init__(self, backends: Sequence[Backend], warn: Callable[[str], None], at_once: int) -> None:
        """warn: receives a message about each device that fails. at_once: chunks that each device maps at once."""
        self.backends, self.at_once = tuple(backends), at_once
        self._warn = warn
        self.working: Sequence[int] = range(len(backends))  # indices of the devices that have not failed
        self._lock = threading.Lock()

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return tuple({error for backend in self.backends for error in backend.device_errors})

    @contextlib.contextmanager
    def using(self, device_index: int) -> Iterator[None]:
        """Let the calling thread use a device, on a stream of its own."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.backends[device_index].thread_stream())
            yield
            if device_index not in self.working:
                stack.pop_all()  # closing the stream of a failed device would raise its error again

    def exclude(self, device_index: int, error: Exception) -> int:
        """Exclude a failed device and warn; return the index of another one, or raise `error` if none is left."""
        with self._lock:
            if device_index in self.working:
                self.working = [other for other in self.working if other != device_index]
                if self.working:
                    name = self.backends[device_index].name
                    self._warn(f"{name} has failed and is left out, others map its reads: {error}")
            if not self.working:
                raise error
            return self.working[device_index % len(self.working)]


def describe_devices(backends: Sequence[Backend]) -> str:
    """Return the names of devices that work together; the CPU is named with its threads if there are several."""
    threads = [f" with {one.threads} threads" if one.name == "cpu" and one.threads > 1 else "" for one in backends]
    return ", ".join(one.name + suffix for one, suffix in zip(backends, threads, strict=True))
