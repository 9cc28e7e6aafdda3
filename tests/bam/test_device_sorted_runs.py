"""Sorted runs on a device, merged there and on the way through the host, compared with one sort."""

import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pysam
import pytest
from alignment_files import names_in, records_of, search_in, write_inputs
from examples import draw_reads, small_genome
from test_order import CONTIGS, draw_records, place_of

from readmap.backend import Backend, open_backend
from readmap.backend.buffers import ClosedError
from readmap.bam import device_sorted_runs
from readmap.bam.codecs import Compression
from readmap.bam.device_sorted_runs import RECORD_OVERHEAD_BYTES, DeviceRuns
from readmap.bam.file_index import FileIndex, IndexEntries, IndexFormat
from readmap.bam.marking import DUPLICATE, FRAGMENT_TAG_BYTES, OPTICAL, Marking, no_marking
from readmap.bam.order import SortedRecords, offset_fragment_ids, sort_records
from readmap.bam.sorted_runs import measure_nothing
from readmap.formats.bgzf import BgzfOutput, Blocks, Codec
from readmap.run import outputs

DRAW = random.Random(47)
GENOME = small_genome(DRAW)


def run_of(records: list[bytes], backend: Backend, first: int | None = None) -> SortedRecords:
    """first: fragment ID of the first record; None: records have no fragment IDs."""
    lengths = np.array([len(one) for one in records], np.int64)
    data, ends = np.frombuffer(b"".join(records), np.uint8), np.cumsum(lengths)
    given = backend.to_device(data), backend.to_device(lengths), backend.to_device(ends)
    if first is None:
        return sort_records(*given, CONTIGS, backend)
    run = sort_records(*given, CONTIGS, backend, backend.to_device(np.arange(len(records), dtype=np.int64)))
    offset_fragment_ids(run, first, backend)
    return run


@pytest.mark.parametrize("fetched", [False, True])
@pytest.mark.parametrize("piece_bytes", [50, 3000, 1 << 20])
@pytest.mark.parametrize("counts", [[], [1], [0, 40, 0], [300, 1, 200, 250]])
def test_in_order(
    backends: str, counts: list[int], piece_bytes: int, fetched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record may be larger than a piece; the measure callback gets the bytes of the piece."""
    monkeypatch.setattr(device_sorted_runs, "PIECE_BYTES", piece_bytes)
    backend, drawn = open_backend(backends, 2), [draw_records(DRAW, count) for count in counts]
    held = DeviceRuns(backend, CONTIGS, 1 << 30, 0)
    for records in drawn:
        assert held.add(run_of(records, backend))
    expected = sorted((record for records in drawn for record in records if record), key=place_of)
    index, found = FileIndex([1 << 30] * CONTIGS, IndexFormat.CSI, 0), list[bytes]()
    for piece in held.pieces(held.sort(held.take(), no_marking(backend)), index.measure, fetched):
        assert isinstance(piece.bytes, np.ndarray) or not fetched
        data = backend.to_host(piece.bytes) if not fetched else piece.bytes.copy()
        piece.release()
        found.append(data.tobytes())
        before = sum(map(count_in, found[:-1]))
        own = expected[before : before + count_in(found[-1])]
        same(piece.measured, index.measure(data, np.cumsum([len(one) for one in own])))
    assert b"".join(found) == b"".join(expected)
    assert held.take() == []
    held.close()


@pytest.mark.parametrize(("is_removed", "has_type"), [(False, False), (True, False), (False, True)])
def test_marked(backends: str, is_removed: bool, has_type: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record is its own fragment; the fragment IDs have more than one byte."""
    monkeypatch.setattr(device_sorted_runs, "PIECE_BYTES", 3000)
    backend, drawn = open_backend(backends, 2), [draw_records(DRAW, count) for count in (400, 1, 300)]
    held, first, marks = DeviceRuns(backend, CONTIGS, 1 << 30, 0), 0, DRAW.choices([0, 0, 1, 3], k=701)
    expected = []
    for records in drawn:
        assert held.add(run_of(records, backend, first))
        expected += [(one, marks[first + number]) for number, one in enumerate(records) if one]
        first += len(records)
    expected.sort(key=lambda one: place_of(one[0]))
    marking = Marking(backend.to_device(np.array(marks, np.uint8)), FRAGMENT_TAG_BYTES, is_removed, has_type)
    found = b"".join(
        backend.to_host(piece.bytes).tobytes()
        for piece in held.pieces(held.sort(held.take(), marking), measure_nothing, to_host=False)
    )
    kept = [marked(one, mark, has_type) for one, mark in expected if not (mark and is_removed)]
    assert found == b"".join(kept)
    held.close()


def marked(record: bytes, mark: int, has_type: bool) -> bytes:
    """Return the expected output record."""
    if not mark & DUPLICATE:
        return record
    tag = (b"DTZSQ\0" if mark & OPTICAL else b"DTZLB\0") if has_type else b""
    data = bytearray(record + tag)
    data[:4] = (len(data) - 4).to_bytes(4, "little")
    data[19] |= 4
    return bytes(data)


def count_in(data: bytes) -> int:
    """Return the number of records."""
    count = 0
    while data:
        data, count = data[4 + int.from_bytes(data[:4], "little") :], count + 1
    return count


def same(seen: IndexEntries, other: IndexEntries) -> None:
    assert seen.rows.tolist() == other.rows.tolist()
    assert seen[1:] == other[1:]


def test_capacity() -> None:
    """A run is refused if it does not fit with others; a single run is always accepted."""
    backend = open_backend("cpu", 1)
    run = run_of(draw_records(DRAW, 50), backend)
    size = len(run.bytes) + RECORD_OVERHEAD_BYTES * len(run.ends)
    held = DeviceRuns(backend, CONTIGS, 2 * size, 0)
    assert [held.add(run) for _ in range(3)] == [True, True, False]
    assert len(held.take()) == 2
    little = DeviceRuns(backend, CONTIGS, 1, 0)
    assert [little.add(run) for _ in range(2)] == [True, False]
    for one in (held, little):
        one.close()


def test_reserved_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs get three quarters of the rest, the last quarter is for runs added during a move."""
    backend = open_backend("cpu", 1)
    run = run_of(draw_records(DRAW, 50), backend)
    size = len(run.bytes) + RECORD_OVERHEAD_BYTES * len(run.ends)
    monkeypatch.setattr(backend, "memory", lambda: (4 * size + 1000, 1 << 40))
    for reserved, expected in ((1000, [True] * 3 + [False]), (2 * size + 1000, [True, False, False, False])):
        held = DeviceRuns(backend, CONTIGS, 1 << 40, reserved)
        assert [held.add(run) for _ in range(4)] == expected
        held.close()


def test_closed_in_the_middle() -> None:
    backend = open_backend("cpu", 1)
    held = DeviceRuns(backend, CONTIGS, 1 << 30, 0)
    held.add(run_of(draw_records(DRAW, 50), backend))
    ordered = held.sort(held.take(), no_marking(backend))
    held.close()
    with pytest.raises((ClosedError, RuntimeError)):
        list(held.pieces(ordered, measure_nothing, to_host=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index, reads, their BAM, and that BAM sorted by samtools."""
    folder = write_inputs(tmp_path_factory.mktemp("held"), GENOME, draw_reads(DRAW, GENOME, 600))
    assert search_in(folder, "plain.bam") == 0
    pysam.samtools.sort("-o", str(folder / "expected.bam"), str(folder / "plain.bam"), catch_stdout=False)
    return folder


@pytest.fixture
def cpu_as_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the CPU as a device with its own memory, and use a codec that reads it."""

    def compression(*_: object) -> Compression:
        return Compression(lambda: Codec("device", DeviceBgzfOutput))

    monkeypatch.setattr(outputs, "_holds_runs", lambda backend, order: order is not None)
    monkeypatch.setattr(outputs, "choose_compression", compression)


class DeviceBgzfOutput(BgzfOutput):
    """A BGZF output that accepts arrays on the device."""

    from_device = True


@pytest.mark.parametrize("memory", ["1K", "60K", "1G"])
@pytest.mark.parametrize("ending", ["bam", "cram"])
def test_sorted_as_samtools_sorts(
    folder: Path, tmp_path: Path, cpu_as_device: None, ending: str, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the device only, and through memory and files; the file equals the one from runs on the host."""
    monkeypatch.setattr(device_sorted_runs, "PIECE_BYTES", 5000)
    out = tmp_path / f"out.{ending}"
    options = ["--sort", "--sort-memory", memory, "--batch-reads", "40"]
    assert search_in(folder, str(out), *options) == 0
    assert records_of(out, folder / "ref.fa") == records_of(folder / "expected.bam")
    index = {"bam": "out.bam.bai", "cram": "out.cram.crai"}[ending]
    assert names_in(tmp_path) == sorted([out.name, index])
    if ending == "bam":
        monkeypatch.undo()
        (tmp_path / "again").mkdir()
        shutil.move(out, tmp_path / "held.bam")
        made = (tmp_path / index).read_bytes()
        assert search_in(folder, str(out), *options) == 0
        assert (tmp_path / index).read_bytes() == made
        assert pysam.view("--no-PG", str(out)) == pysam.view("--no-PG", str(tmp_path / "held.bam"))


def test_unsorted_records_on_the_device(folder: Path, tmp_path: Path, cpu_as_device: None) -> None:
    assert search_in(folder, str(tmp_path / "out.bam"), "--batch-reads", "33") == 0
    assert records_of(tmp_path / "out.bam") == records_of(folder / "plain.bam")


@pytest.mark.parametrize("options", [["--sort", "--sort-memory", "1K"], ["--sort"], []])
def test_an_output_that_fails(
    folder: Path, tmp_path: Path, cpu_as_device: None, options: list[str], fail: Callable[[], None]
) -> None:
    fail()
    assert search_in(folder, str(tmp_path / "out.bam"), "--batch-reads", "33", *options) == 1
    assert names_in(tmp_path) == []


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let compression fail."""

    def compress(*_: object) -> Blocks:
        raise OSError(28, "No space left on device", "out.bam")

    def compression(*_: object) -> Compression:
        return Compression(lambda: Codec("failing", partial(DeviceBgzfOutput, compress=compress)))

    return lambda: monkeypatch.setattr(outputs, "choose_compression", compression)
