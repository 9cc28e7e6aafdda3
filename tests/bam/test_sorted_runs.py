"""Merging sorted runs from memory and files, compared with one sort; closing at any moment."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from readmap.backend.buffers import ClosedError
from readmap.backend.cpu import CpuBackend
from readmap.bam import memory
from readmap.bam.memory import GrowableBuffer
from readmap.bam.sorted_runs import SortedRuns, measure_nothing

DRAW = np.random.default_rng(3)


def draw_run(number: int, count: int) -> tuple[list[int], list[bytes]]:
    """Draw keys, many of them equal, and records that contain their run and index."""
    keys = np.sort(DRAW.integers(0, 40, count, np.uint64))
    return keys.tolist(), [b"%d.%d." % (number, i) + b"x" * int(DRAW.integers(0, 200)) for i in range(count)]


def add(runs: SortedRuns, keys: list[int], records: list[bytes], of_bytes: bool = False) -> None:
    """of_bytes: keys as NumPy bytes, of a different length in each run."""
    made = (
        np.array(keys, np.uint64)
        if not of_bytes
        else np.array([b"\1\0%02d" % key for key in keys], f"S{8 + len(keys) % 3}")
    )
    runs.add(made, np.cumsum([len(record) for record in records]).astype(np.int64))
    data = np.frombuffer(b"".join(records), np.uint8)
    for begin in range(0, len(data), 1000):
        runs.fill(data[begin : begin + 1000])


def folder_in(parent: Path) -> Callable[[], Path]:
    """Return a function that creates a new folder at each call."""

    def make() -> Path:
        folder = parent / str(len([*parent.iterdir()]))
        folder.mkdir()
        return folder

    return make


@pytest.mark.parametrize("of_bytes", [False, True])
@pytest.mark.parametrize("most", [1, 20_000, 1 << 30])
@pytest.mark.parametrize("counts", [[0], [1], [300], [100, 0, 400, 1, 250, 250]])
def test_merged_in_order(tmp_path: Path, most: int, counts: list[int], of_bytes: bool) -> None:
    runs = SortedRuns(most, folder_in(tmp_path), CpuBackend(2))
    expected: list[tuple[int, int, bytes]] = []
    for number, count in enumerate(counts):
        keys, records = draw_run(number, count)
        add(runs, keys, records, of_bytes)
        expected += [(key, number, record) for key, record in zip(keys, records, strict=True)]
    expected.sort(key=lambda one: one[:2])
    found, keys_found = b"", list[int]()
    for piece in runs.merged(measure_nothing):
        found += piece.bytes.tobytes()
        keys_found += [int(key[2:]) if of_bytes else key for key in piece.keys.tolist()]
        piece.buffer.release()
    assert found == b"".join(record for _, _, record in expected)
    assert keys_found == [key for key, _, _ in expected]
    assert runs.records == sum(counts)
    assert (runs.spilled_bytes > 0) == (most < 1 << 30 and len(counts) > 1)
    assert len([*tmp_path.iterdir()]) == (runs.spilled_bytes > 0)
    runs.close()


def test_no_folder_is_created_after_close(tmp_path: Path) -> None:
    runs = SortedRuns(1, folder_in(tmp_path), CpuBackend(1))
    add(runs, *draw_run(0, 50))
    runs.close()
    for _ in range(2):
        with pytest.raises(ClosedError):
            add(runs, *draw_run(1, 50))
    assert not [*tmp_path.iterdir()]
    runs.close()


def test_close_waits_for_a_spill(tmp_path: Path) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def folder() -> Path:
        begun.set()
        assert goes_on.wait(10)
        return folder_in(tmp_path)()

    runs, ended = SortedRuns(1, folder, CpuBackend(1)), list[type[BaseException]]()
    add(runs, *draw_run(0, 50))

    def spill() -> None:
        with pytest.raises(ClosedError) as error:
            add(runs, *draw_run(1, 50))
        ended.append(error.type)

    threads = [threading.Thread(target=spill), threading.Thread(target=runs.close)]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    threads[1].join(0.1)
    assert threads[1].is_alive()
    goes_on.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert ended == [ClosedError]


def test_growth_keeps_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "INITIAL_BYTES", 1000)
    held = GrowableBuffer()
    assert held.grow(10, 5000)
    assert len(held.bytes) == 1000
    held.bytes[:] = 7
    assert held.grow(1001, 5000)
    assert (len(held.bytes), held.bytes[:1000].min()) == (2000, 7)
    assert held.grow(4001, 5000)
    assert len(held.bytes) == 4001
    assert held.grow(6000, 5000)  # size is more than max_size
    assert len(held.bytes) == 6000
    assert not held.grow(1 << 60, 1 << 61)
    assert (len(held.bytes), held.bytes[:1000].min()) == (6000, 7)


def test_references_outlive_close() -> None:
    held = GrowableBuffer()
    assert held.grow(10, 100)
    view = held.bytes[:5]
    held.close()
    assert len(held.bytes) == 0
    view[:] = 1
    assert view.sum() == 5
