"""Chunks that several threads map at once: their order, and what happens if memory runs out or the run ends."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples import draw_reads, fastq, index_of, small_genome
from search_runs import Full, map_files, refuse

from readmap.backend import Backend, open_backend
from readmap.errors import DataError
from readmap.index.device import DeviceIndex
from readmap.run import read_mapper, record_blocks, sample
from readmap.run.batch_processor import DoesNotFit
from readmap.run.chunk_turns import ChunkTurn, ChunkTurns, Preempted, Stopped, exclusive_turn
from readmap.run.writer import Writer

DRAW = random.Random(91)
GENOME = small_genome(DRAW)
READS = draw_reads(DRAW, GENOME, 300)
INDEX = index_of(GENOME)

PATIENCE = 0.05


@dataclass(frozen=True)
class World:
    """An index on a device, reads in a file, and the records of a search in one chunk."""

    backend: Backend
    index: DeviceIndex
    reads: Path
    records: bytes

    def first_records(self, count: int) -> bytes:
        return b"".join(self.records.splitlines(keepends=True)[:count])


@pytest.fixture(scope="module")
def world(backends: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder, backend = tmp_path_factory.mktemp("world"), open_backend(backends, 1)
    index = INDEX.to_device(backend)
    (folder / "reads.fq").write_bytes(fastq(READS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "READS", 40)  # so that most chunks are mapped out of turn
        map_files([folder / "reads.fq"], index, backend, folder / "out.sam")
        yield World(backend, index, folder / "reads.fq", (folder / "out.sam").read_bytes())


@pytest.fixture
def pool() -> Any:
    with ThreadPoolExecutor(8) as threads:
        yield threads


def waits(future: Future[Any]) -> bool:
    """Return True if a future does not finish within PATIENCE."""
    try:
        future.exception(PATIENCE)
    except TimeoutError:
        return True
    return False


def test_turns_come_in_the_order_of_the_numbers(pool: ThreadPoolExecutor) -> None:
    turns, ended = ChunkTurns(), list[int]()

    def work(number: int) -> None:
        turns.start(number)
        ChunkTurn(turns, number).wait()
        ended.append(number)
        turns.end(number)

    working = [pool.submit(work, number) for number in (3, 1, 2)]
    assert all(map(waits, working))
    work(0)
    for one in working:
        one.result()
    assert ended == [0, 1, 2, 3]


def test_who_is_alone_has_the_memory_of_those_behind(pool: ThreadPoolExecutor) -> None:
    """Waiting chunks are preempted, computing chunks when they wait, and later chunks do not start."""
    turns = ChunkTurns()
    for number in range(3):
        turns.start(number)
    waiting = pool.submit(turns.wait, 1)
    alone = pool.submit(turns.wait_exclusive, 0)
    assert isinstance(waiting.exception(), Preempted)
    assert waits(alone)
    dropped = [pool.submit(turns.release_and_wait, 1)]
    assert waits(alone)
    with pytest.raises(Preempted):
        turns.wait(2)
    dropped.append(pool.submit(turns.release_and_wait, 2))
    assert alone.result() is True
    later = pool.submit(turns.start, 3)
    assert all(map(waits, [*dropped, later]))
    assert turns.wait_exclusive(0) is False
    turns.end(0)
    assert dropped[0].result() is None
    assert waits(dropped[1])
    turns.end(1)
    assert dropped[1].result() is None
    turns.end(2)
    assert later.result() is None


def test_all_that_wait_are_stopped(pool: ThreadPoolExecutor) -> None:
    turns = ChunkTurns()
    for number in range(4):
        turns.start(number)
    calls: list[Callable[[int], object]] = [turns.wait, turns.release_and_wait, turns.end]
    waiting = [pool.submit(call, number) for number, call in enumerate(calls, 1)]
    assert all(map(waits, waiting))
    turns.stop()
    assert all(isinstance(one.exception(), Stopped) for one in waiting)
    with pytest.raises(Stopped):
        turns.start(4)


def test_exclusive_turn_does_not_wait() -> None:
    turn = exclusive_turn()
    turn.wait()
    assert turn.wait_exclusive() is False


@pytest.mark.parametrize(("at_once", "batch"), [(1, 7), (2, 99), (5, 7)])
def test_same_bytes_for_any_number_of_chunks_at_once(world: World, tmp_path: Path, at_once: int, batch: int) -> None:
    backend = open_backend(world.backend.name)
    backend.concurrent_chunks = at_once
    summary = map_files([world.reads], world.index, backend, tmp_path / "out.sam", batch_reads=batch)
    assert (tmp_path / "out.sam").read_bytes() == world.records
    assert summary.reads == summary.primary == len(READS)


@pytest.mark.parametrize("batch", [1, 20])
def test_what_does_not_fit_beside_others_is_mapped_alone(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """With memory for one chunk, even a single read is tried again after all others have released theirs."""
    backend, at_work, lock = open_backend(world.backend.name), set[int](), threading.Lock()
    backend.concurrent_chunks = 3

    def are_others(*_: Any) -> bool:
        with lock:
            at_work.add(threading.get_ident())
            return len(at_work) > 1

    refused = refuse(monkeypatch, backend, record_blocks, "format_records", are_others)
    monkeypatch.setattr(backend, "release_memory", lambda: at_work.discard(threading.get_ident()))
    write = Writer.write

    def hand_over(*arguments: Any) -> None:
        at_work.discard(threading.get_ident())
        write(*arguments)

    monkeypatch.setattr(Writer, "write", hand_over)
    map_files([world.reads], world.index, backend, tmp_path / "out.sam", batch_reads=batch)
    assert (tmp_path / "out.sam").read_bytes() == world.records
    assert refused


def test_a_read_that_does_not_fit_alone_is_an_error(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records of all earlier chunks are written."""
    backend, seen = open_backend(world.backend.name), list[int]()
    backend.concurrent_chunks = 3
    first_bases = len(READS[200].bases)

    def is_the_one(*arguments: Any) -> bool:
        reads = arguments[0]
        seen.append(reads.count)
        return int(reads.lengths[0]) == first_bases and reads.count == 1 and bases_of(reads) == READS[200].bases

    def bases_of(reads: Any) -> str:
        begin = int(reads.sequence_starts[0])
        return bytes(backend.to_host(reads.bytes[begin : begin + first_bases])).decode()

    refuse(monkeypatch, backend, read_mapper, "search_reads", is_the_one)
    with pytest.raises(DoesNotFit) as raised:
        map_files([world.reads], world.index, backend, tmp_path / "out.sam", batch_reads=1)
    assert isinstance(raised.value.__cause__, Full)
    assert (tmp_path / "out.sam").read_bytes() == world.first_records(200)


@pytest.mark.parametrize("number", [0, 150])
def test_an_error_comes_behind_all_in_front_of_it(world: World, tmp_path: Path, number: int) -> None:
    backend = open_backend(world.backend.name)
    backend.concurrent_chunks = 4
    records = [fastq([read]) for read in READS]
    records[number] = b"@bad\nAC-T\n+\nIIII\n"
    (tmp_path / "reads.fq").write_bytes(b"".join(records))
    with pytest.raises(DataError, match=rf"record {number + 1} \(bad\)"):
        map_files([tmp_path / "reads.fq"], world.index, backend, tmp_path / "out.sam", batch_reads=3)
    assert (tmp_path / "out.sam").read_bytes() == world.first_records(number)


def test_a_fault_of_a_thread_ends_the_run(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is raised in the caller of the run, and no thread is left."""
    backend, align, times = open_backend(world.backend.name), read_mapper.align_reads, list[int]()
    backend.concurrent_chunks = 3

    def broken(*arguments: Any) -> Any:
        times.append(1)
        if len(times) > 9:
            raise RuntimeError("broken")
        return align(*arguments)

    monkeypatch.setattr(read_mapper, "align_reads", broken)
    with pytest.raises(RuntimeError, match="broken"):
        map_files([world.reads], world.index, backend, tmp_path / "out.sam", batch_reads=10)
    assert world.records.startswith((tmp_path / "out.sam").read_bytes())
    assert not [thread for thread in threading.enumerate() if thread.name == "readmap-map"]
