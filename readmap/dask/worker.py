"""What a worker keeps between tasks and jobs: its device, and on it the index that was searched last."""

import contextlib
import ctypes
import functools
import logging
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from distributed import WorkerPlugin, get_worker

from readmap.backend import Backend, open_backend
from readmap.backend.machine import available_memory
from readmap.dask import GPU_TASK_READS, TASK_READS
from readmap.dask.task_turns import TaskTurn, TaskTurns
from readmap.errors import BackendError, ReadmapError
from readmap.formats.array_folder import MANIFEST
from readmap.index.device import DeviceIndex
from readmap.index.index import Index
from readmap.index.suffix_array import kernel_types
from readmap.run.config import SearchConfig
from readmap.version import __version__

#: The Dask resource that a task takes, and the tasks of a worker at once: one maps while another one reads ahead or
#: writes its last records. With three tasks a GPU took a quarter longer.
RESOURCE, CONCURRENT_TASKS = "readmap", 2
#: Parameters of mallopt, and bytes of free memory that malloc keeps.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, KEPT_BYTES = -1, -3, 32 << 20
#: Limit of a device's host buffers that stay from task to task, and their largest share of the available memory. New
#: buffers for each task would take a sixth of a GPU's time.
BUFFER_BYTES, BUFFER_SHARE = 8 << 30, 8

KERNEL_ROOMS = ("bam", "common", "duplicates", "index", "reads", "mapping", "run")

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_log = logging.getLogger("readmap")


class TaskLimit(WorkerPlugin):
    """Limits the tasks that a worker runs at once."""

    name = "readmap"

    def __init__(self) -> None:
        self.version = __version__

    async def setup(self, worker: Any) -> None:
        """Set up a worker; raise BackendError if it has another version of readmap."""
        if self.version != __version__:
            raise BackendError(f"{worker.address} has readmap {__version__}, and this is {self.version}")
        _keep_memory()
        await worker.set_resources(**{RESOURCE: CONCURRENT_TASKS})


def dask_setup(worker: Any) -> None:
    """Let a worker of a local cluster ignore interrupts: a terminal sends them to workers too, and the search ends
    them. Dask calls this when a worker starts. Its warnings about the tasks that are cancelled then are suppressed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("distributed.worker.state_machine").setLevel(logging.ERROR)


def _keep_memory() -> None:
    """Let malloc keep freed memory, as it does by default. Dask's nannies make it return all memory at once, so that a
    third of a batch's time goes to page faults."""
    with contextlib.suppress(AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, 2 * KEPT_BYTES)


def return_errors(task: Callable[Arguments, Result]) -> Callable[Arguments, Result | ReadmapError]:
    """Let a task return errors of data and usage instead of raising them, so that Dask does not try it again."""

    @functools.wraps(task)
    def caught(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result | ReadmapError:
        try:
            return task(*arguments, **named)
        except BackendError:
            raise
        except ReadmapError as error:
            return error

    return caught


#: Context managers: the turn of a task that uses all threads and the device, and of one that waits for the device
#: later.
_turns = TaskTurns()
take_turn, read_ahead = _turns.take, _turns.read_ahead

_backends: dict[tuple[str, int, int | None], Backend] = {}
#: The key of the index on the device (folder, options, device and version), and the index.
_loaded: tuple[tuple[Any, ...], DeviceIndex] | None = None


def address() -> str:
    return str(get_worker().address)


def worker_backend(device: str, threads: int | None = None, gpu_memory: int | None = None) -> Backend:
    """Return this worker's device, opened once as open_backend does. threads: default, the worker's threads."""
    key = device, threads or get_worker().state.nthreads, gpu_memory
    if key not in _backends:
        _backends[key] = open_backend(*key)
        available = available_memory()
        limit = BUFFER_BYTES if available is None else available // BUFFER_SHARE
        _backends[key].cache_host_buffers(min(BUFFER_BYTES, limit))
    return _backends[key]


@return_errors
def task_reads(config: SearchConfig) -> int:
    with take_turn():
        return TASK_READS if config_backend(config).name == "cpu" else GPU_TASK_READS


def config_backend(config: SearchConfig) -> Backend:
    return worker_backend(config.device, config.threads, config.gpu_memory_limit)


def worker_index(config: SearchConfig, turn: TaskTurn) -> tuple[DeviceIndex, Backend]:
    """Return the index of a search on this worker's device, where it stays until another index is searched. The calling
    thread uses the device. Raises the errors of Index.open and Index.to_device."""
    global _loaded
    path = Path(config.index or "")
    backend, manifest = config_backend(config), path / MANIFEST
    written = manifest.stat() if manifest.exists() else None
    version = written and (written.st_mtime_ns, written.st_size, written.st_ino)
    key = path, config.check, config.alternates, backend, version
    if _loaded is None or _loaded[0] != key:
        turn.wait_alone()
        _loaded = None  # a device has room for one index
        backend.release_memory()
        index = Index.open(path, config.check, config.alternates)
        backend.compile_missing(kernel_types(index.suffixes), KERNEL_ROOMS, _log.info)
        _loaded = key, index.to_device(backend)
        backend.synchronize()
    return _loaded[1], backend
