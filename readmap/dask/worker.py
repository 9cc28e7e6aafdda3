"""What a worker keeps between tasks and jobs: its device, and there the index that was searched last."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from distributed import WorkerPlugin, get_worker

from readmap.backend import Backend, open_backend
from readmap.backend.machine import available_memory
from readmap.dask import GPU_TASK_READS, TASK_READS
from readmap.dask.job import IndexLocation, Resources
from readmap.dask.task_turns import Turn, Turns
from readmap.errors import BackendError, ReadmapError
from readmap.formats.array_folder import MANIFEST
from readmap.index.device import DeviceIndex
from readmap.index.index import Index
from readmap.index.suffix_array import kernel_types
from readmap.version import __version__

#: What a task takes one of, and how many a worker has: one task maps, while another one reads ahead, or writes its last
#: records. With a third a GPU took a quarter longer.
RESOURCE, AT_ONCE = "readmap", 2

#: Of mallopt, and what malloc keeps by itself after some large blocks have come and gone.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, KEPT_BYTES = -1, -3, 32 << 20

#: Of a device's buffers, which stay from task to task: a sixth of a GPU's time would be spent on new ones. And the part
#: of the host's available memory that they take at most.
BUFFER_BYTES, BUFFER_SHARE = 8 << 30, 8

ROOMS = ("bam", "common", "duplicates", "index", "reads", "mapping", "run")

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_log = logging.getLogger("readmap")


class TaskLimit(WorkerPlugin):
    """Has a worker take no more of readmap's tasks at once than have something to do."""

    name = "readmap"

    def __init__(self) -> None:
        self.version = __version__

    async def setup(self, worker: Any) -> None:
        """Of a worker that is there, or that comes. Raises BackendError where its readmap is another one."""
        if self.version != __version__:
            raise BackendError(f"{worker.address} has readmap {__version__}, and this is {self.version}")
        _keep_memory()
        await worker.set_resources(**{RESOURCE: AT_ONCE})


def dask_setup(worker: Any) -> None:
    """What Dask has a worker of a cluster of this machine do when it begins: leave the end of the search to the search.

    A terminal interrupts workers too, and of tasks that are cancelled then Dask would warn.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("distributed.worker.state_machine").setLevel(logging.ERROR)


def _keep_memory() -> None:
    """Have malloc keep what is let go, as it does outside of Dask, whose nannies have it return all memory at once: a
    third of a batch's time would be spent on fresh pages."""
    with contextlib.suppress(AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, 2 * KEPT_BYTES)


def return_errors(task: Callable[Arguments, Result]) -> Callable[Arguments, Result | ReadmapError]:
    """A task that returns an error of data or of usage instead of raising it, since it would come again however often
    the task were tried."""

    @functools.wraps(task)
    def told(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result | ReadmapError:
        try:
            return task(*arguments, **named)
        except BackendError:
            raise
        except ReadmapError as error:
            return error

    return told


@dataclass(frozen=True)
class _LoadedIndex:
    """An index on a device; key: by which it is known."""

    key: tuple[Any, ...]
    index: DeviceIndex


#: A task's turn, in which it has all threads of the worker, and its device; and one in which it waits for that later.
_turns = Turns()
take_turn, read_ahead = _turns.take, _turns.read_ahead

_backends: dict[tuple[str, int, int | None], Backend] = {}
_held: _LoadedIndex | None = None


def address() -> str:
    """Where this worker is."""
    return str(get_worker().address)


def worker_backend(resources: Resources) -> Backend:
    """This worker's device, opened once; raises what open_backend does."""
    key = resources.device, resources.threads or get_worker().state.nthreads, resources.gpu_memory
    if key not in _backends:
        _backends[key] = open_backend(*key)
        available = available_memory()
        _backends[key].cache_host_buffers(min(BUFFER_BYTES, BUFFER_BYTES if available is None else available // BUFFER_SHARE))
    return _backends[key]


@return_errors
def task_reads(resources: Resources) -> int:
    """How many reads a task is to have of this worker's device, about."""
    with take_turn():
        return TASK_READS if worker_backend(resources).name == "cpu" else GPU_TASK_READS


def worker_index(place: IndexLocation, resources: Resources, turn: Turn) -> tuple[DeviceIndex, Backend]:
    """An index on this worker's device, where it stays until another one is asked for; the calling thread uses the
    device.

    Raises what Index.open and Index.to_device raise.
    """
    global _held
    backend, manifest = worker_backend(resources), (Path(place.path) / MANIFEST)
    written = manifest.stat() if manifest.exists() else None
    key = place, backend, written and (written.st_mtime_ns, written.st_size, written.st_ino)
    if _held is None or _held.key != key:
        turn.wait_alone()
        _held = None  # a device has room for one
        backend.release_memory()
        index = Index.open(place.path, place.check, place.alternates)
        backend.compile_missing(kernel_types(index.suffixes), ROOMS, _log.info)
        _held = _LoadedIndex(key, index.to_device(backend))
        backend.synchronize()
    return _held.index, backend
