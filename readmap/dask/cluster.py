"""The cluster: a client of one that runs, or one of this machine; tasks, and their results in order."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from readmap.backend import Gpus, device_names
from readmap.dask import LOCAL
from readmap.errors import BackendError, ReadmapError

#: Where a cluster of this machine listens, and the variable that shows CUDA some GPUs.
LOOPBACK, VISIBLE = "127.0.0.1", "CUDA_VISIBLE_DEVICES"

#: How long a cluster of this machine waits for a worker that has ended to be there again, before it does without.
LOST_WORKER = "distributed.deploy.lost-worker-timeout"

#: How often a task is tried again that fails by what may pass, as a disk that is full.
RETRIES = 3

#: Seconds to wait for a scheduler, and for its first worker; and until tasks that are to come are asked for again.
PATIENCE, SOON = 30, 0.05

Result = TypeVar("Result")


def expect_dask() -> None:
    """Raise BackendError where Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise BackendError(f"Dask is not installed: pip install 'readmap[dask]' ({error})") from None


@contextlib.contextmanager
def connected(address: str, device: str, gpus: Gpus, threads: int) -> Iterator[Any]:
    """A client of the cluster at an address, a scheduler's or a file's that it has written; or of one of this machine,
    with a worker a GPU, or one for the CPU, which share the threads.

    Raises BackendError where Dask or the cluster is not there.
    """
    expect_dask()
    import dask
    from distributed import Client

    with contextlib.ExitStack() as opened:
        where: Any = {"scheduler_file": address} if os.path.isfile(address) else {"address": address}
        if address == LOCAL:
            opened.enter_context(dask.config.set({LOST_WORKER: "1 hour"}))
            where = {"address": opened.enter_context(_local(device, gpus, threads))}
        try:
            client = opened.enter_context(Client(**where, timeout=PATIENCE, set_as_default=False))
        except (OSError, ValueError) as error:
            raise BackendError(f"--dask {address}: no scheduler of Dask is there: {error}") from None
        yield client


def _local(device: str, gpus: Gpus, threads: int) -> Any:
    """A cluster of this machine, a process for each GPU, or one for a device that is named, or the CPU."""
    from distributed import LocalCluster, Nanny, Scheduler, SpecCluster

    fixed = {"host": LOOPBACK, "dashboard_address": f"{LOOPBACK}:0"}
    found, each = device_names(device, gpus), {"memory_limit": 0, "preload": ["readmap.dask.worker"]}
    if found == [device]:
        return LocalCluster(**fixed, n_workers=1, threads_per_worker=threads, processes=True, **each)
    each |= {"nthreads": max(threads // len(found), 1), "host": LOOPBACK}
    workers = {
        place: {"cls": Nanny, "options": each | {"env": {VISIBLE: gpu}}} for place, gpu in enumerate(gpus_of(found))
    }
    return SpecCluster(workers=workers, scheduler={"cls": Scheduler, "options": fixed})


def gpus_of(devices: Sequence[str]) -> list[str]:
    """What shows each of some devices to a process alone, as CUDA has it; devices: as cuda:N, N of those shown here."""
    shown = os.environ.get(VISIBLE)
    numbers = [int(name.partition(":")[2]) for name in devices]
    return [shown.split(",")[number].strip() if shown else str(number) for number in numbers]


class Tasks:
    """Tasks of one job on a cluster."""

    def __init__(self, client: Any) -> None:
        """Raises BackendError where the cluster has no workers, or some of another readmap."""
        from readmap.dask.worker import TaskLimit

        self._client, self._name = client, secrets.token_hex(4)
        try:
            client.wait_for_workers(1, PATIENCE)
        except TimeoutError:
            raise BackendError(f"the cluster at {client.scheduler.address} has no workers") from None
        client.register_plugin(TaskLimit())

    @property
    def workers(self) -> int:
        """How many there are now."""
        return len(self.addresses)

    @property
    def addresses(self) -> list[str]:
        """Where the workers are, in a lasting order."""
        return sorted(self._client.scheduler_info(n_workers=-1)["workers"])

    def submit(self, what: str, number: int, task: Callable[..., Any], *arguments: Any, **preferred: Any) -> Any:
        """A future of a task that is called so on the dashboard. preferred: as Client.submit has it."""
        from readmap.dask.worker import RESOURCE

        fixed = {"retries": RETRIES, "pure": False, "resources": {RESOURCE: 1}, "priority": -number}
        if self._client.status == "closed":
            raise BackendError("the cluster has ended")
        return self._client.submit(task, *arguments, key=f"readmap-{what}-{number}-{self._name}", **fixed, **preferred)

    def results(self, futures: Iterable[Any], come: Callable[[Any], None] = lambda result: None) -> Iterator[Any]:
        """The results in the order of the futures; come: called with each as it comes.

        futures: asked for while others are waited for; None for one that is still to come. Raises the first error in
        their order, whichever comes first, what asking for them raises, and BackendError where the cluster fails.
        """
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
                    future = done.get(timeout=SOON if coming else None)
                except queue.Empty:
                    continue
                number = numbers[future.key]
                known[number] = _outcome(waiting.pop(number))
                future.release()
                if isinstance(known[number], BaseException):
                    coming = None
                    self._client.cancel([waiting[other] for other in waiting if other > number])
                else:
                    come(known[number])
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
    """What a task has returned, or the error by which it has ended."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        return BackendError(
            f"the task {future.key} has ended several workers, the last one {error.last_worker.address}"
        )
    except CancelledError:
        return BackendError(f"the task {future.key} was cancelled, or the cluster has ended")
    except (ReadmapError, OSError, MemoryError) as error:
        return error
