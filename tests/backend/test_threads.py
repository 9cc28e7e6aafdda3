"""The host's threads: every item once, whoever launches; an interrupt ends a launch; threads end with their backend."""

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


def test_every_item_is_taken_once(tiny: Path) -> None:
    for threads in (1, 2, 5, 16):
        for count in (1, 7, 1000, 100_003):
            assert run_add(open_backend("cpu", threads), count, 3) == list(range(4, count + 4))


def test_many_launch_at_once(tiny: Path) -> None:
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
    raise AssertionError("they are still there")


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_ends_a_launch(tiny: Path, threads: int) -> None:
    """No call is under way behind it: the arrays may go."""
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


def test_a_failed_launch_leaves_the_others(tiny: Path) -> None:
    backend = open_backend("cpu", 2)
    with pytest.raises(TypeError):
        backend.launch(Kernel("common/tiny", "add"), 3, numbers=1)
    assert run_add(backend) == list(range(1, 11))
