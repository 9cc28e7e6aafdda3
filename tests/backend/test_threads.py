"""The host's threads: concurrent launches, interrupts, and the end of the threads with their backend."""

import gc
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tiny_module import run_add

from readmap.backend import Kernel, open_backend


def threads_of_this_process() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_concurrent_launches(tiny: Path) -> None:
    backend = open_backend("cpu", 3)
    with ThreadPoolExecutor(8) as pool:
        for count, sums in zip(range(200), pool.map(lambda count: run_add(backend, count), range(200)), strict=True):
            assert sums == list(range(1, count + 1))


def test_threads_end_with_their_backend(tiny: Path) -> None:
    before = threads_of_this_process()
    backend = open_backend("cpu", 7)
    run_add(backend)
    assert threads_of_this_process() > before
    del backend
    gc.collect()
    for _ in range(200):
        if threads_of_this_process() <= before:
            return
        time.sleep(0.01)
    raise AssertionError("the threads still exist")


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_ends_a_launch(tiny: Path, threads: int) -> None:
    """No call runs after the interrupt, so that the arrays can be freed."""
    (tiny / "slow.cu").write_text(
        '#include "common/portable.cuh"\n#include <time.h>\n'
        "KERNEL void wait(WarpItems items, u8* visits OF(items)) {\n"
        "    timespec nap = {0, 1000000};\n"
        "    FOR_EACH(item, items) { nanosleep(&nap, 0); visits[item] = 1; }\n}\n"
    )
    backend, visits = open_backend("cpu", threads), np.zeros(100_000, np.uint8)
    kernel = Kernel("common/slow", "wait")
    backend.launch(kernel, 1, visits=np.zeros(1, np.uint8))
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    before, began = signal.signal(signal.SIGINT, signal.default_int_handler), time.perf_counter()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            backend.launch(kernel, len(visits), visits=visits)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - began < 20
    taken = int(visits.sum())
    assert 0 < taken < len(visits)
    time.sleep(0.05)
    assert int(visits.sum()) == taken
    assert run_add(backend) == list(range(1, 11))


def test_launch_after_a_failed_launch(tiny: Path) -> None:
    backend = open_backend("cpu", 2)
    with pytest.raises(TypeError):
        backend.launch(Kernel("common/tiny", "add"), 3, numbers=1)
    assert run_add(backend) == list(range(1, 11))
