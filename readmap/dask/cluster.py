"""The client of a running cluster or of a local one; tasks, and their results in order."""

import contextlib
import os
import queue
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from readmap.backend import Gpus, device_names
from readmap.dask import LOCAL
from readmap.errors import BackendError, ReadmapError

#: Host of a local cluster, and the variable that lists the GPUs visible to CUDA.
LOOPBACK, VISIBLE = "127.0.0.1", "CUDA_VISIBLE_DEVICES"
#: Setting of Dask: how long a local cluster waits for a lost worker to return.
LOST_WORKER = "distributed.deploy.lost-worker-timeout"
#: How often a failed task is tried again, since its reason may pass, such as a full disk.
RETRIES = 3
#: Seconds to wait for a scheduler and for its first worker, and between two requests for further tasks.
CONNECT_SECONDS, POLL_SECONDS = 30, 0.05

Result = TypeVar("Result")


def expect_dask() -> None:
    """Raise BackendError if Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise BackendError(f"Dask is not installed: pip install 'readmap[dask]' ({error})") from None


@contextlib.contextmanager
def connected(address: str, device: str, gpus: Gpus, threads: int) -> Iterator[Any]:
    """Yield a client of a cluster. address: a scheduler's address, or the path of its scheduler file,
    or "local": then start a local cluster with a worker for each GPU, or one for the CPU, which share the threads.
    Raises BackendError if Dask is not installed or the cluster cannot be reached."""
    expect_dask()
    import dask
    from distributed import Client

    with contextlib.ExitStack() as opened:
        where: Any = {"scheduler_file": address} if os.path.isfile(address) else {"address": address}
        if address == LOCAL:
            opened.enter_context(dask.config.set({LOST_WORKER: "1 hour"}))
            where = {"address": opened.enter_context(_local(device, gpus, threads))}
        try:
            client = opened.enter_context(Client(**where, timeout=CONNECT_SECONDS, set_as_default=False))
        except (OSError, ValueError) as error:
            raise BackendError(f"--dask {address}: no Dask scheduler answers: {error}") from None
        yield client


def _local(device: str, gpus: Gpus, threads: int) -> Any:
    """Return a local cluster: a process for each GPU, or one for a named device or the CPU."""
    from distributed import LocalCluster, Nanny, Scheduler, SpecCluster

    fixed = {"host": LOOPBACK, "dashboard_address": f"{LOOPBACK}:0"}
    found, each = device_names(device, gpus), {"memory_limit": 0, "preload": ["readmap.dask.worker"]}
    if found == [device]:
        return LocalCluster(**fixed, n_workers=1, threads_per_worker=threads, processes=True, **each)
    each |= {"nthreads": max(threads // len(found), 1), "host": LOOPBACK}
    workers = {
        index: {"cls": Nanny, "options": each | {"env": {VISIBLE: gpu}}} for index, gpu in enumerate(gpus_of(found))
    }
    return SpecCluster(workers=workers, scheduler={"cls": Scheduler, "options": fixed})


def gpus_of(devices: Sequence[str]) -> list[str]:
    """Return the value of CUDA_VISIBLE_DEVICES for each device; devices: "cuda:N", N an index of visible GPUs."""
    shown = os.environ.get(VISIBLE)
    numbers = [int(name.partition(":")[2]) for name in devices]
    return [shown.split(",")[number].strip() if shown else str(number) for number in numbers]


class Tasks:
    """The tasks of one job on a cluster."""

    def __init__(self, client: Any) -> None:
        """Raise BackendError if the cluster has no workers, or workers with another version of readmap."""
        from readmap.dask.worker import TaskLimit

        self._client, self._name = client, secrets.token_hex(4)
        try:
            client.wait_for_workers(1, CONNECT_SECONDS)
        except TimeoutError:
            raise BackendError(f"the cluster at {client.scheduler.address} has no workers") from None
        client.register_plugin(TaskLimit())

    @property
    def workers(self) -> int:
        return len(self.addresses)

    @property
    def addresses(self) -> list[str]:
        return sorted(self._client.scheduler_info(n_workers=-1)["workers"])

    def submit(self, what: str, index: int, task: Callable[..., Any], *arguments: Any, **preferred: Any) -> Any:
        """Submit a task, and return its future; lower indices have priority. what: its name on the dashboard.
        preferred: further arguments of Client.submit."""
        from readmap.dask.worker import RESOURCE

        fixed = {"retries": RETRIES, "pure": False, "resources": {RESOURCE: 1}, "priority": -index}
        if self._client.status == "closed":
            raise BackendError("the cluster has ended")
        return self._client.submit(task, *arguments, key=f"readmap-{what}-{index}-{self._name}", **fixed, **preferred)

    def results(self, futures: Iterable[Any], on_result: Callable[[Any], None] = lambda result: None) -> Iterator[Any]:
        """Yield the results in the order of the futures. futures: is iterated while earlier futures are waited for; it
        yields None if the next one is not known yet. on_result: called with each result as it arrives. Raises the error
        of the first failing future in their order, the errors of iterating `futures`, and BackendError if the cluster
        fails."""
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        coming: Iterator[Any] | None = iter(futures)
        numbers, waiting, known, following = dict[str, int](), dict[int, Any](), dict[int, Any](), 0
        try:
            while True:
                for future in coming or ():
                    if future is not None:
                        number = numbers[future.key] = len(numbers)
                        waiting[number] = future
                        future.add_done_callback(done.put)
                    if future is None or not done.empty():
                        break
                else:
                    coming = None
                if not (coming or waiting):
                    return
                if not waiting and self._client.status == "closed":
                    raise BackendError("the cluster has ended")
                try:
                    future = done.get(timeout=POLL_SECONDS if coming else None)
                except queue.Empty:
                    continue
                number = numbers[future.key]
                known[number] = _outcome(waiting.pop(number))
                future.release()
                if isinstance(known[number], BaseException):
                    coming = None
                    self._client.cancel([waiting[other] for other in waiting if other > number])
                else:
                    on_result(known[number])
                while following in known:
                    outcome = known.pop(following)
                    if isinstance(outcome, BaseException):
                        raise outcome
                    yield outcome
                    following += 1
        finally:
            if waiting:
                self._client.cancel([*waiting.values()])


def _outcome(future: Any) -> Any:
    """Return the result of a finished task, or the error with which it or its cluster failed; do not raise it."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        return BackendError(
            f"the task {future.key} has killed several workers, most recently {error.last_worker.address}"
        )
    except CancelledError:
        return BackendError(f"the task {future.key} was cancelled, or the cluster has ended")
    except (ReadmapError, OSError, MemoryError) as error:
        return error
