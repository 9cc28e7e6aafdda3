"""Several devices: they write what one writes, and where some fail the others do."""

from __future__ import annotations

import dataclasses
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import draw_pairs, fasta, fastq, index_of, small_genome, write_pairs

from readmap.backend import Backend, device_names, open_backend
from readmap.backend.buffers import Buffer, BufferPool
from readmap.backend.cpu import CpuBackend
from readmap.cli import main
from readmap.formats.output import Output, commit_together, open_output
from readmap.index.device import DeviceIndex
from readmap.index.index import Index
from readmap.mapping.batch import Context
from readmap.mapping.parameters import Reporting
from readmap.mapping.records import RecordStyle
from readmap.reads.chunks import PairLayout
from readmap.run import chunk_plan, exact, sample, stream, writer
from readmap.run.batch_processor import RunSummary
from readmap.run.chunk_plan import ChunkPlan
from readmap.run.read_mapper import ReadMapper

GENERATOR = random.Random(20)
CONTIGS = small_genome(GENERATOR)
PAIRS = draw_pairs(GENERATOR, CONTIGS, 60)
BATCH = 20  # reads
ESTIMATED = 30  # reads or pairs that the sample is estimated from: several batches


class DeviceError(Exception):
    """A device is broken."""


class Failing(CpuBackend):
    """A device that fails at a launch or at a copy to the host, and at every later one."""

    device_errors = (DeviceError,)

    def __init__(self, steps: int) -> None:
        super().__init__(1)
        self.left = steps

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise DeviceError("it fell off the bus")

    def run(self, *arguments: Any) -> None:
        self._step()
        super().run(*arguments)

    def to_host(self, array: Any) -> Any:
        self._step()
        return super().to_host(array)


class FailingToCopy(Failing):
    """A device that fails at a copy to a host buffer, and at everything after it."""

    def __init__(self, copies: int, is_late: bool) -> None:
        """copies: before it fails. is_late: whether it says so only to who waits for the bytes."""
        super().__init__(copies)
        self._is_late = is_late

    def _step(self) -> None:
        if self.left < 0:
            raise DeviceError("it fell off the bus")

    def synchronize(self) -> None:
        self._step()

    def download(self, array: Any, pool: BufferPool) -> tuple[Buffer, Callable[[], None]]:
        self._step()
        self.left -= 1
        if not self._is_late:
            self._step()
        buffer, _ = super().download(array, pool)
        if self.left < 0:
            buffer.data[:] = 0  # they have not come
        return buffer, self._step


class Roomy(CpuBackend):
    """Has memory of its own."""

    def __init__(self, free: int) -> None:
        """free: bytes of it."""
        super().__init__(1)
        self.free = free

    def memory(self) -> tuple[int, int]:
        return self.free, self.free


@pytest.fixture(scope="module", autouse=True)
def few_reads_show_the_sample() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "READS", ESTIMATED)
        patch.setattr(sample, "PAIRS", ESTIMATED)
        yield


def cpus(count: int) -> list[Backend]:
    return [open_backend("cpu", 1) for _ in range(count)]


def devices(kind: str, count: int) -> list[Backend]:
    """Open `count` devices; several of them share a GPU if there are fewer GPUs."""
    names = device_names(kind, "all")
    return [open_backend(names[number % len(names)], 1) for number in reversed(range(count))][::-1]


def on_each(index: Index, backends: Sequence[Backend]) -> list[DeviceIndex]:
    """Copy an index to the first device, and from there to the others."""
    first = index.to_device(backends[0])
    backends[0].synchronize()
    others = []
    for backend in backends[1:]:
        with backend.thread_stream():
            others.append(first.copy_to(backend))
    return [first, *others]


Make = Callable[[Index, Sequence[Backend]], Any]


def mapping(style: RecordStyle | None = None, reporting: Reporting | None = None) -> Make:
    def make(index: Index, backends: Sequence[Backend]) -> ReadMapper:
        placed = zip(on_each(index, backends), backends, strict=True)
        return ReadMapper([Context(*own, reporting=reporting or Reporting()) for own in placed], style)

    return make


def exactly(index: Index, backends: Sequence[Backend]) -> exact.ExactSearch:
    parameters = exact.Parameters(format=exact.LineFormat.TSV)
    return exact.ExactSearch(on_each(index, backends), parameters, backends)


WORKS: dict[str, tuple[Make, PairLayout]] = {
    "pairs": (mapping(), PairLayout.TWO_FILES),
    "single reads": (mapping(), PairLayout.SINGLE),
    "all places": (mapping(reporting=Reporting(max_secondary=5)), PairLayout.TWO_FILES),
    "exact": (exactly, PairLayout.SINGLE),
}


def counts(summary: RunSummary) -> dict[str, Any]:
    """Return the counts that do not depend on times or on which device maps which reads."""
    counted = dataclasses.asdict(summary)
    counted = {name: counted[name] for name in counted.keys() - {"seconds", "waiting", "devices", "warnings", "work"}}
    return counted | ({"mapqs": counted["mapqs"].tolist()} if "mapqs" in counted else {})


@dataclass
class World:
    """An index, files of pairs, and by name of a work the bytes that one device writes and its counts."""

    index: Index
    files: list[Path]
    out: Path
    expected: dict[str, tuple[bytes, dict[str, Any]]]

    def search(self, name: str, backends: Sequence[Backend], batch_reads: int | None = BATCH) -> tuple[bytes, Any]:
        """Return what a work writes on some devices, and its summary."""
        make, layout = WORKS[name]
        work = make(self.index, backends)
        paths = [str(path) for path in self.files[: layout.files]]
        with Output(str(self.out), os.open(self.out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)) as output:
            stream.run(paths, [output], work, backends, layout=layout, batch_reads=batch_reads)
        return self.out.read_bytes(), work.summary

    def check(self, name: str, backends: Sequence[Backend], about: object, **options: Any) -> RunSummary:
        """Check that some devices write and count what one does, and return their summary."""
        written, summary = self.search(name, backends, **options)
        assert (written, counts(summary)) == self.expected[name], about
        return summary

    def add_failing(self, name: str, backends: list[Backend], place: int, steps: int) -> Failing:
        """Insert a device that fails after some steps, not counting those that copy the index to it."""
        device = Failing(1 << 30)
        backends.insert(place, device)
        WORKS[name][0](self.index, backends)
        device.left = steps + (1 << 30) - device.left
        return device


@pytest.fixture(scope="module")
def world(few_reads_show_the_sample: None, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("reads")
    files = write_pairs(folder, PAIRS, PairLayout.TWO_FILES)
    made = World(index_of(list(CONTIGS.values())), files, folder / "out", {})
    for name in WORKS:
        written, summary = made.search(name, cpus(1))
        assert written
        made.expected[name] = written, counts(summary)
    return made


@pytest.mark.parametrize(
    ("name", "count"), [("pairs", 2), ("pairs", 8), ("single reads", 3), ("all places", 2), ("exact", 3)]
)
def test_several_devices_write_what_one_writes(backends: str, world: World, name: str, count: int) -> None:
    summary = world.check(name, devices(backends, count), count)
    assert sum(own["reads"] for own in summary.devices.values()) == summary.reads


def test_larger_chunks_change_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several devices map the chunks of the plan for several devices."""
    found: list[tuple[Any, ...]] = []
    read_chunks, make_devices = stream.read_chunks, stream.Devices

    def reading(*given: Any, **named: Any) -> Any:
        found.append(given[2:])
        for chunk in read_chunks(*given, **named):
            found.append((chunk.records,))
            yield chunk

    def devices_of(*given: Any) -> Any:
        found.append(given[2:])
        return make_devices(*given)

    monkeypatch.setattr(stream, "read_chunks", reading)
    monkeypatch.setattr(stream, "Devices", devices_of)
    monkeypatch.setattr(chunk_plan, "MULTI_DEVICE_PLAN", ChunkPlan(3, 7000))
    roomy = [Roomy(1 << 40), Roomy(1 << 40)]
    for backend in roomy:
        backend.chunk_bytes, backend.concurrent_chunks = 5000, 2
    world.check("pairs", roomy, "larger", batch_reads=None)
    assert found[:2] == [(3,), (7000, None, 1, 9, None)]
    assert max(records for (records,) in found[2:]) > BATCH // 2


@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("place", [0, 1])
def test_where_a_device_fails_another_does_its_work(world: World, name: str, place: int) -> None:
    """A device may fail while reads are parsed, observed, pending, mapped or counted."""
    failed = 0
    for steps in (0, 3, 10, 30, 70, 150) if name != "exact" else (*[0] * 8, 1, 3, 10, 30):
        backends = cpus(1)
        failing = world.add_failing(name, backends, place, steps)
        summary = world.check(name, backends, steps)
        warning = "cpu has failed and is left out, others map its reads: it fell off the bus"
        assert summary.warnings == [warning] * (failing.left < 0)
        failed += failing.left < 0
    assert failed  # how often depends on which device is quicker


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("name", WORKS)
def test_what_was_not_copied_is_made_again(
    world: World, name: str, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a device fails at the start, inside or after a block, the output has every byte once."""
    monkeypatch.setattr(writer, "OUTPUT_BYTES", 700)
    failed = 0
    for copies, place in ((0, 0), (1, 1), (5, 0), (12, 1)) * (4 if name == "exact" else 1):
        backends = cpus(1)
        backends.insert(place, FailingToCopy(copies, is_late))
        failed += bool(world.check(name, backends, copies).warnings)
    assert failed  # how often depends on which device is quicker


def test_each_output_has_what_it_lacks(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records and reads without a place are copied one after the other, and either may be where a device fails."""
    monkeypatch.setattr(writer, "OUTPUT_BYTES", 700)
    lost = [tmp_path / f"lost.{mate}.fq" for mate in (1, 2)]
    for path, own in zip(lost, world.files, strict=True):
        lines = own.read_bytes().splitlines(True)
        for at in range(1, len(lines), 12):  # a read of three
            lines[at] = bytes(GENERATOR.choices(b"ACGT", k=len(lines[at]) - 1)) + b"\n"
        path.write_bytes(b"".join(lines))

    def written(backends: list[Backend]) -> tuple[list[bytes], RunSummary]:
        work, paths = (
            mapping(RecordStyle(unmapped=True))(world.index, backends),
            [tmp_path / name for name in ("sam", "fq")],
        )
        with open_output(str(paths[0])) as records, open_output(str(paths[1])) as unmapped:
            sinks = [records, unmapped]
            stream.run([*map(str, lost)], sinks, work, backends, layout=PairLayout.TWO_FILES, batch_reads=BATCH)
            commit_together(sinks)
        return [path.read_bytes() for path in paths], work.summary

    wanted, one = written(cpus(1))
    assert all(wanted)
    failed = 0
    for copies in (0, 5, 9, 12, 15, 20):
        found, summary = written([FailingToCopy(copies, bool(copies % 2)), *cpus(1)])
        assert found == wanted, copies
        assert counts(summary) == counts(one), copies
        failed += bool(summary.warnings)
    assert failed


@pytest.mark.parametrize("name", ["pairs", "single reads", "all places"])
def test_where_there_is_no_room_for_what_comes_from_a_device_that_failed(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failure at a copy or at a launch no read is lost, nor is a pending one."""
    monkeypatch.setattr(writer, "OUTPUT_BYTES", 700)

    class Full(CpuBackend):
        """Has no room once, when the other has failed."""

        was_full = False

        def upload(self, parts: Any) -> Any:
            if failing.left < 0 and not self.was_full:
                self.was_full = True
                raise MemoryError
            return super().upload(parts)

    found = 0
    failing: Failing
    for steps, place in ((0, 0), (1, 1), (4, 0), (20, 0), (60, 1), (140, 0)):
        full = Full(1)
        backends: list[Backend] = [full]
        if steps < 6:
            failing = FailingToCopy(steps, False)
            backends.insert(place, failing)
        else:
            failing = world.add_failing(name, backends, place, steps)
        world.check(name, backends, steps)
        found += full.was_full
    assert found  # how often depends on which device is quicker


@pytest.mark.parametrize("name", WORKS)
def test_one_device_after_the_other_fails(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device may also fail while it makes again what another one had not copied."""
    monkeypatch.setattr(writer, "OUTPUT_BYTES", 700)
    for number in range(3):
        broken = [FailingToCopy(GENERATOR.randrange(4), bool(GENERATOR.randrange(2))) for _ in range(3)]
        world.check(name, [*broken, *cpus(1)], number)


@pytest.mark.parametrize("is_late", [False, True])
def test_no_buffer_is_lost_with_a_device(tmp_path: Path, is_late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer keeps its number of buffers if devices fail during copies."""
    monkeypatch.setattr(writer, "OUTPUT_BYTES", 10)
    data = np.arange(100, dtype=np.uint8)
    with open_output(str(tmp_path / "out")) as output:
        with writer.Writer([output], open_backend("cpu", 1), 10, (DeviceError,)) as writing:
            for copies in range(1, 9):
                block = writer.Block(data, FailingToCopy(copies, is_late))
                writing.write(block)
                assert isinstance(block.error, DeviceError)
                assert block.copied <= 10 * copies
                writing.write(writer.Block(data[block.copied :], open_backend("cpu", 1)))
        output.commit()
    assert (tmp_path / "out").read_bytes() == 8 * data.tobytes()


def test_an_error_of_the_host_is_no_failure_of_a_device(tmp_path: Path) -> None:
    class Healthy(CpuBackend):
        device_errors = (DeviceError,)

        def download(self, array: Any, pool: BufferPool) -> tuple[Buffer, Callable[[], None]]:
            raise DeviceError("no page-locked memory is left")

    with open_output(str(tmp_path / "out")) as output:
        block = writer.Block(np.zeros(10, np.uint8), Healthy(1))
        with (
            pytest.raises(DeviceError, match="page-locked"),
            writer.Writer([output], open_backend("cpu", 1), 10, (DeviceError,)) as writing,
        ):
            writing.write(block)
        assert block.error is None


def test_the_last_failure_is_that_of_the_run(world: World) -> None:
    backends: list[Backend] = [Failing(30), Failing(50), Failing(90)]
    with pytest.raises(DeviceError, match="it fell off the bus"):
        world.search("pairs", backends)


@pytest.mark.parametrize(
    "options",
    [["--sort", "-o", "{}.bam"], ["--sort", "--markdup", "--metrics", "{}.metrics", "-o", "{}.bam"], ["-o", "{}.sam"]],
)
def test_the_command_writes_the_same(
    backends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ref.fa").write_bytes(fasta(CONTIGS))
    for name, mates in zip(("r1.fq", "r2.fq"), zip(*PAIRS, *PAIRS[:40], strict=True), strict=True):
        Path(name).write_bytes(fastq(mates))
    assert main(["index", "ref.fa"]) == 0
    found = []
    for count in (1, 3):
        monkeypatch.setattr("readmap.run.config.open_backends", lambda *_, count=count: devices(backends, count))
        given = [option.format("out") for option in options]
        assert main(["search", "r1.fq", "r2.fq", "-x", "ref.fa", "--batch-reads", "30", *given]) == 0
        written = {path.name: path.read_bytes() for path in sorted(tmp_path.glob("out.*"))}
        assert written
        found.append(written)
    assert found[0] == found[1]
