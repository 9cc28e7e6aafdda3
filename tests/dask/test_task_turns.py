"""Tasks of a worker that wait for each other."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from examples import Read, fasta, fastq, random_bases

import readmap.dask
from readmap.dask.task_turns import TaskTurn, TaskTurns

#: Seconds in which what is to happen happens, and in which what is not to happen would.
LONG, SHORT = 30, 0.05

Start = Callable[[Callable[[TaskTurn], Any]], Future[Any]]


@pytest.fixture
def turns() -> TaskTurns:
    return TaskTurns()


@pytest.fixture
def start(turns: TaskTurns) -> Iterator[Start]:
    """Begins tasks, each in a thread and a turn."""
    with ThreadPoolExecutor(8) as pool:

        def task(work: Callable[[TaskTurn], Any]) -> Any:
            with turns.take() as turn:
                return work(turn)

        yield lambda work: pool.submit(task, work)


def is_waiting(future: Future[Any]) -> bool:
    time.sleep(SHORT)
    return not future.done()


def test_one_has_a_turn(start: Start) -> None:
    at_once, most = [0], [0]

    def work(_: TaskTurn) -> None:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        time.sleep(1e-3)
        at_once[0] -= 1

    for future in [start(work) for _ in range(40)]:
        future.result(LONG)
    assert most == [1]


def test_one_reads_ahead_while_another_has_the_device(turns: TaskTurns) -> None:
    seen, ends = list[str](), threading.Event()
    reads = {name: threading.Event() for name in "abc"}

    def work(name: str) -> None:
        with turns.read_ahead() as turn:
            seen.append(f"{name} reads, {'ahead' if turn.is_ahead() else 'waited for'}")
            reads[name].set()
            if name == "c":
                return
            turn.wait_for_device()
            seen.append(f"{name} has the device")
            assert name == "b" or ends.wait(LONG)
            if name == "a":
                turn.end_reading()
                turn.end_reading()  # nobody else's turn
                assert reads["b"].wait(LONG)
                seen.append("a gives way")
                turn.release_device()
                turn.release_device()

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(work, "a")
        assert reads["a"].wait(LONG)
        second = pool.submit(work, "b")
        assert is_waiting(second)
        assert not reads["b"].is_set()
        ends.set()
        first.result(LONG)
        second.result(LONG)
        pool.submit(work, "c").result(LONG)
    assert seen == [
        "a reads, waited for",
        "a has the device",
        "b reads, ahead",
        "a gives way",
        "b has the device",
        "c reads, waited for",
    ]


@pytest.fixture
def writing(start: Start) -> Iterator[tuple[Future[Any], threading.Event]]:
    """Start a task that has released the device, and yield it with the event that ends it."""
    goes_on, began = threading.Event(), threading.Event()

    def first(turn: TaskTurn) -> bool:
        turn.end_reading()
        turn.release_device()
        began.set()
        return goes_on.wait(LONG)

    ends = start(first)
    assert began.wait(LONG)
    yield ends, goes_on
    goes_on.set()


def test_who_gives_way_lets_one_begin(start: Start, writing: tuple[Future[Any], threading.Event]) -> None:
    ends, goes_on = writing
    has_turn, waits = start(lambda _: goes_on.wait(LONG)), start(lambda turn: "third")
    assert is_waiting(waits)
    assert not ends.done()
    goes_on.set()
    assert [ends.result(LONG), has_turn.result(LONG), waits.result(LONG)] == [True, True, "third"]


def test_a_task_waits_until_it_is_alone(start: Start, writing: tuple[Future[Any], threading.Event]) -> None:
    ends, goes_on = writing
    alone = start(lambda turn: turn.wait_alone())
    assert is_waiting(alone)
    goes_on.set()
    alone.result(LONG)
    assert ends.done()


def test_the_device_goes_to_who_has_read_first(turns: TaskTurns) -> None:
    """Also where one that has it from the begin on waits to be alone."""
    seen, has_read, goes_on = list[str](), threading.Event(), threading.Event()

    def small() -> None:
        with turns.read_ahead() as turn:
            turn.end_reading()
            has_read.set()
            assert goes_on.wait(LONG)
            turn.wait_for_device()
            turn.wait_for_device()
            assert not turn.is_ahead()
            seen.append("small")

    def whole() -> None:
        with turns.take() as turn:
            turn.wait_alone()
            seen.append("whole")

    def made_before() -> None:
        with turns.read_ahead():
            pass

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(small)
        assert has_read.wait(LONG)
        second = pool.submit(whole)
        assert is_waiting(second)
        goes_on.set()
        first.result(LONG)
        second.result(LONG)
        pool.submit(made_before).result(LONG)
        pool.submit(whole).result(LONG)
    assert seen == ["small", "whole", "whole"]


@pytest.mark.parametrize("gives_way", [False, True])
def test_an_error_ends_a_turn(start: Start, gives_way: bool) -> None:
    def fail(turn: TaskTurn) -> None:
        if gives_way:
            turn.end_reading()
            turn.release_device()
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        start(fail).result(LONG)
    start(lambda turn: turn.wait_alone()).result(LONG)


def test_a_shard_is_read_ahead_and_mapped_while_the_one_before_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'readmap[dask]'")
    from readmap.dask import map_tasks

    read, mapped, at_once = threading.Semaphore(0), threading.Semaphore(0), list[bool]()
    opened, commit, wait, release_device = (
        map_tasks.open_parts,
        map_tasks.commit_together,
        TaskTurn.wait_for_device,
        TaskTurn.release_device,
    )

    def begins_to_read(*arguments: Any) -> Any:
        if TaskTurn.release_device is release_device:  # the first shard's; of other tasks nothing is asked
            monkeypatch.setattr(TaskTurn, "wait_for_device", begins_to_map)
            monkeypatch.setattr(TaskTurn, "release_device", gives_way)
        read.release()
        return opened(*arguments)

    def begins_to_map(turn: TaskTurn) -> None:
        wait(turn)
        mapped.release()

    def gives_way(turn: TaskTurn) -> None:
        if not at_once:
            at_once.append(read.acquire(timeout=LONG) and read.acquire(timeout=LONG))
        release_device(turn)

    def ends(sinks: Any) -> None:
        if len(at_once) == 1:
            at_once.append(mapped.acquire(timeout=LONG) and mapped.acquire(timeout=LONG))
        commit(sinks)

    monkeypatch.setattr(map_tasks, "open_parts", begins_to_read)
    monkeypatch.setattr(map_tasks, "commit_together", ends)
    draw = random.Random(71)
    genome = random_bases(draw, 3_000)
    reads = [Read(str(at), genome[at : at + 100], "I" * 100) for at in range(0, 2_400, 8)]
    (tmp_path / "ref.fa").write_bytes(fasta({"one": genome}))
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    readmap.build_index(tmp_path / "ref.fa", device="cpu").write(tmp_path / "ref.fa.readmap")
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        wanted = [str(tmp_path / "reads.fq")]
        found = readmap.dask.search(
            client, wanted, tmp_path / "ref.fa", tmp_path / "out.sam", tasks=4, device="cpu", threads=1
        )
    assert at_once == [True, True]
    assert found.counts["mapped"] == len(reads)
    lines = (tmp_path / "out.sam").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines if line[0] != "@"] == [read.name for read in reads]
