"""Test comparisons on several devices: results do not depend on their number, and all stop if one fails."""

import random
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from examples import random_bases
from pair_examples import CORNERS, draw_long_pair, mutated, same

from readmap import PairAlignments
from readmap.backend import Backend, open_backend
from readmap.backend.team import Team
from readmap.errors import BackendError, DataError
from readmap.pairwise import checkpoint, column_blocks, grid, long_pairs, multi_device_sweep
from readmap.pairwise.column_blocks import ColumnBlock, Plan, column_ranges, plan
from readmap.pairwise.comparison import compare_all
from readmap.pairwise.device_sequences import sequences_from_texts
from readmap.pairwise.long_pairs import align_long
from readmap.pairwise.matrix import DPMatrix
from readmap.pairwise.parameters import CompareSettings, MatchScores, Mode
from readmap.reads.sequences import Sequences
from readmap.strand import Strand

COUNTS = pytest.mark.parametrize("count", [2, 3, 8])
MODES = pytest.mark.parametrize("mode", list(Mode))


class Interrupted(Exception):
    """Raised in the middle of a sweep."""


@pytest.fixture(params=["few blocks", "many"])
def lag(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use one block per device, or the maximum number."""
    monkeypatch.setattr(column_blocks, "LAG", 10_000 if request.param == "few blocks" else 0)


def several(name: str, count: int) -> list[Backend]:
    opened = [open_backend(name, threads=1) for _ in range(count)]
    for each in opened:
        each.concurrent_warps = each.resident_warps = 1  # slabs of few rows
    return opened


def align(
    pair: tuple[str, str], mode: Mode, backends: list[Backend], scores: MatchScores | None = None, **how: Any
) -> PairAlignments:
    progress = how.pop("progress", lambda done, total: None)
    scores = scores or MatchScores()

    def matrix(backend: Backend) -> DPMatrix:
        query, target = (sequences_from_texts([side], backend).codes[: len(side)] for side in pair)
        return DPMatrix(query, target, scores, mode, backend)

    with Team.of(*backends) as team:
        return align_long(team.map(matrix, team.backends), CompareSettings(scores, **how), team, progress)


@COUNTS
@MODES
@pytest.mark.usefixtures("small_tiles", "lag")
def test_the_number_of_devices_changes_nothing(backends: str, mode: Mode, count: int) -> None:
    draw = random.Random(f"{mode}{count}")
    pairs = [draw_long_pair(draw, 2500) for _ in range(5)]
    pairs.append((random_bases(draw, 2000), random_bases(draw, 3000)))
    for pair in pairs:
        costs = [(1, 3, 3, 2), (2, 3, 5, 1), (1, 1, 0, 1), (100, 70, 300, 50)]
        scores = MatchScores(*draw.choice(costs))
        for memory in (1 << 16, 1 << 30):
            for how in ({}, {"pruning": False}, {"score_only": True}):
                expected = align(pair, mode, several(backends, 1), scores, memory=memory, **how)
                assert same(align(pair, mode, several(backends, count), scores, memory=memory, **how), expected)


@COUNTS
@MODES
def test_fewer_columns_than_devices(backends: str, mode: Mode, count: int) -> None:
    texts = ["A", "ACGT" * 20, "ACGTTGCA" * 17, "N" * 129]
    for pair in [*CORNERS, *((query, target) for query in texts for target in texts)]:
        expected = align(pair, mode, several(backends, 1))
        assert same(align(pair, mode, several(backends, count)), expected), pair


@pytest.mark.usefixtures("small_tiles", "lag")
def test_ties_across_blocks_end_at_the_first_cell(backends: str) -> None:
    """Repeats end in every block, and directly before and after the borders of blocks."""
    unit = random_bases(random.Random(3), 40)
    for gap in (0, 1, 20, 24):
        apart = ("N" * gap).join([unit] * 40)
        for count in (2, 3):
            found = align((unit, apart), Mode.LOCAL, several(backends, count))
            assert (found.query_ends[0], found.target_ends[0], found.cigars()) == (40, 40, ["40="])


@pytest.mark.usefixtures("small_tiles", "lag")
@pytest.mark.parametrize("text", ["same", "similar"])
def test_similar_sequences_are_pruned(backends: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pruning never ignores what other columns may still add."""
    draw, skipped, swept = random.Random(4), [0], column_blocks.sweep_slab
    one = random_bases(draw, 9000)
    pair = one, one if text == "same" else mutated(draw, one, 0.05)

    def count(*arguments: Any) -> Any:
        slab = swept(*arguments)
        skipped[0] += slab.swept.skipped
        return slab

    monkeypatch.setattr(column_blocks, "sweep_slab", count)
    expected = align(pair, Mode.LOCAL, several(backends, 1), pruning=False)
    assert skipped[0] == 0
    for devices in (1, 2, 3):
        skipped[0] = 0
        assert same(align(pair, Mode.LOCAL, several(backends, devices)), expected)
        assert skipped[0] > 0


@pytest.mark.usefixtures("small_tiles")
def test_both_strands(backends: str) -> None:
    draw = random.Random(5)
    text = random_bases(draw, 1500)
    backwards = text[::-1].translate(str.maketrans("ACGT", "TGCA"))
    sides = [Sequences.of([b"a"], [np.frombuffer(each.encode(), np.uint8)]) for each in (backwards, text)]
    for strand in Strand:
        found = []
        for count in (1, 3):
            with Team.of(*several(backends, count)) as team:
                (results,) = compare_all(*sides, CompareSettings(), strand, team, lambda done, total: None)
            found.append(next(iter(results)))
        assert found[1].reverse == (strand is not Strand.FORWARD)
        assert [str(field) for field in found[0]] == [str(field) for field in found[1]]


@MODES
@pytest.mark.parametrize("score_only", [True, False], ids=["score", "alignment"])
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 2), (1, 3), (3, 1), (2, 8)])
@pytest.mark.usefixtures("small_tiles", "lag")
def test_an_interrupted_comparison_resumes_on_other_devices(
    backends: str, mode: Mode, score_only: bool, before: int, after: int, tmp_path: Path
) -> None:
    draw = random.Random(7)
    text = random_bases(draw, 6000)
    pair, folder = (text, text[:2000] + random_bases(draw, 9) + text[2000:]), tmp_path / "work"
    how: dict[str, Any] = {"score_only": score_only, "memory": 1 << 21}
    expected = align(pair, mode, several(backends, 1), **how)
    reported: list[int] = []

    def progress(done: int, total: int) -> None:
        reported.append(done)
        if len(reported) == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        align(pair, mode, several(backends, before), **how, progress=progress, checkpoint=folder)
    assert (folder / "state.npz").exists()
    with pytest.raises(DataError, match="expected a checkpoint of this comparison, found one of other sequences"):
        align((pair[1], pair[0]), mode, several(backends, after), **how, checkpoint=folder)
    found = align(pair, mode, several(backends, after), **how, progress=progress, checkpoint=folder)
    assert same(found, expected)
    assert reported[2] < reported[3] == min(reported[3:])
    count = len(reported)
    assert same(align(pair, mode, several(backends, after), **how, progress=progress, checkpoint=folder), expected)
    assert len(reported) == count
    assert [path.name for path in folder.iterdir()] == ["alignment.npz"]
    checkpoint.remove_checkpoints(tmp_path)
    assert not folder.exists()


@pytest.mark.usefixtures("small_tiles")
def test_checkpoints_do_not_depend_on_devices(backends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All values are equal for equal tile sizes, without pruning."""
    text, kept = random_bases(random.Random(8), 9000), {}
    steps = grid.TileSizes(4096, 2048, 500)  # whole strips on every device
    monkeypatch.setattr(long_pairs, "_choose_sizes", lambda *_: steps)
    monkeypatch.setattr(checkpoint.Checkpoint, "finish", lambda *_: None)
    for count in (1, 2, 3):
        folder = tmp_path / str(count)
        align((text, text), Mode.GLOBAL, several(backends, count), checkpoint=folder)
        kept[count] = {path.name: dict(np.load(path)) for path in sorted(folder.iterdir())}
    assert [*kept[1]] == ["slab-0.npz", "slab-1.npz", "slab-2.npz", "state.npz"]
    for count in (2, 3):
        for file, arrays in kept[1].items():
            for name, array in arrays.items():
                assert np.array_equal(kept[count][file][name], array), (count, file, name)


@pytest.mark.usefixtures("small_tiles", "lag")
def test_progress_reports_whole_slabs(backends: str) -> None:
    text = random_bases(random.Random(9), 5000)
    reported: list[tuple[int, int]] = []
    align((text, text), Mode.LOCAL, several(backends, 3), progress=lambda *cells: reported.append(cells))
    assert reported == sorted(set(reported))
    assert len(reported) > 3
    assert reported[-1] == (25_000_000, 25_000_000)


@pytest.mark.usefixtures("small_tiles", "lag")
@pytest.mark.parametrize("error", [BackendError("device cuda:1 cannot be used"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_failing_device_stops_all(
    backends: str, error: BaseException, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own error is raised, although another device would have failed later."""
    text = random_bases(random.Random(10), 20_000)
    sweep, threads = ColumnBlock.sweep, threading.active_count()
    opened = several(backends, 3)
    started: list[int] = []

    def fail(block: ColumnBlock, number: int, *rest: Any) -> Any:
        started.append(number)
        if block.matrix.backend is opened[place] and number == 2:
            raise error
        return sweep(block, number, *rest)

    monkeypatch.setattr(ColumnBlock, "sweep", fail)
    with pytest.raises(type(error)) as raised:
        align((text, text), Mode.LOCAL, opened)
    assert raised.value is error
    assert threading.active_count() <= threads
    assert max(started) < 20  # of 40


@pytest.mark.usefixtures("small_tiles")
def test_other_devices_do_not_delay_a_failure(backends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first slab of the last block fails while the first device continues."""
    text, sweep, opened, started = random_bases(random.Random(11), 60_000), ColumnBlock.sweep, several(backends, 2), []

    def fail(block: ColumnBlock, number: int, *rest: Any) -> Any:
        if block.first:
            raise BackendError("device cuda:1 cannot be used")
        started.append(number)
        return sweep(block, number, *rest)

    monkeypatch.setattr(ColumnBlock, "sweep", fail)
    with pytest.raises(BackendError, match="cuda:1"):
        align((text, text[:1000]), Mode.LOCAL, opened)
    assert len(started) < 20  # of 118


@pytest.mark.usefixtures("small_tiles")
def test_a_user_interrupt_stops_all(backends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt arrives while the main thread waits."""
    text, sweep, started = random_bases(random.Random(12), 20_000), ColumnBlock.sweep, []

    def interrupted(block: ColumnBlock, number: int, *rest: Any) -> Any:
        started.append(number)
        if len(started) == 3:
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.02)
        return sweep(block, number, *rest)

    monkeypatch.setattr(ColumnBlock, "sweep", interrupted)
    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        align((text, text), Mode.LOCAL, several(backends, 2))
    assert threading.active_count() <= threads
    assert max(started) < 20  # of 40


def test_order_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any number of blocks per device; a device sweeps other blocks instead of waiting."""
    for devices, count in ((1, 1), (2, 2), (2, 8), (3, 7), (8, 8), (8, 24)):
        done: list[list[int]] = [[] for _ in range(count)]
        matrix = SimpleNamespace(rows=90)

        class Fake:
            grid = SimpleNamespace(sizes=SimpleNamespace(slab_rows=10))

            def __init__(self, number: int, done: list[list[int]] = done, matrix: Any = matrix) -> None:
                self.number, self.done, self.matrix = number, done, matrix

            def sweep(self, number: int, left: Any, *_: Any) -> Any:
                assert left == (self.number - 1 if self.number else None)
                assert self.done[self.number] == list(range(4, number))
                if self.number:
                    assert number in self.done[self.number - 1]
                self.done[self.number].append(number)
                return column_blocks.BlockResult(None, self.number, None)

        backend: Any = SimpleNamespace(use_thread_stream=lambda: None, synchronize=lambda: None)
        parts: Any = [Fake(number) for number in range(count)]
        with Team.of(*[backend] * devices) as team:
            found = list(multi_device_sweep.MultiDeviceSweep(parts, team, True, False, 4, 0).slabs())
        assert [[step.edge for step in steps] for steps in found] == [list(range(count))] * 5
        assert done == [[4, 5, 6, 7, 8]] * count


def test_plans_of_long_sequences() -> None:
    gpu: Any = SimpleNamespace(warp_width=32, lanes_16bit=2, resident_warps=528)

    def of(rows: int, columns: int, devices: int) -> Plan:
        matrix = DPMatrix(np.empty(rows, np.uint8), np.empty(columns, np.uint8), MatchScores(), Mode.LOCAL, gpu)
        return plan(matrix, devices, 4)

    assert of(30_000_000, 30_000_000, 1) == Plan(4, 1)
    assert of(30_000_000, 30_000_000, 2) == Plan(1, 4)
    assert of(30_000_000, 30_000_000, 8) == Plan(1, 3)
    assert of(5_000_000, 5_000_000, 2) == Plan(1, 2)
    assert of(30_000_000, 100_000, 2) == Plan(4, 1)


@pytest.mark.parametrize(("columns", "unit", "count"), [(1000, 128, 2), (1000, 128, 8), (100, 128, 3), (1024, 128, 8)])
def test_column_ranges_have_whole_units(columns: int, unit: int, count: int) -> None:
    made = column_ranges(columns, unit, count)
    assert [first for first, _ in made] == [0, *(end for _, end in made[:-1])]
    assert made[-1][1] == columns
    assert all(first % unit == 0 and end > first for first, end in made)
    sizes = [-(-(end - first) // unit) for first, end in made]
    assert max(sizes) - min(sizes) <= 1
    assert len(made) == min(count, -(-columns // unit))
