"""Progress of a search: share of the input that has been read, remaining time, lines in a log."""

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

import readmap
from readmap.cli import main
from readmap.cli.common import report
from readmap.cli.common.report import TimeLeft
from readmap.formats.byte_source import open_bytes
from readmap.run.monitor import Silent

ROOT = Path(__file__).resolve().parents[2]
READS = str(ROOT / "data/demo.fq.gz")


def search(tmp_path: Path, index: Path, *words: str) -> int:
    return main(["search", *words, "-x", str(index), "-o", str(tmp_path / "out.sam"), "--device", "cpu"])


def test_lines_in_a_log(
    tmp_path: Path, demo_index: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert search(tmp_path, demo_index, READS, "--batch-reads", "1000") == 0
    assert "% read" not in capfd.readouterr().err
    monkeypatch.setattr(report, "LOG_SECONDS", 0.0)
    assert search(tmp_path, demo_index, READS, "--batch-reads", "1000") == 0
    lines = [line for line in capfd.readouterr().err.splitlines() if "% read" in line]
    assert len(lines) == 5
    form = r"100% read: [\d,]+ reads, [\d,]+ a second, [\d.]+% mapped"
    assert all(re.fullmatch(form, line) for line in lines)
    assert lines[-1].startswith("100% read: 5,000 reads, ")
    assert search(tmp_path, demo_index, READS, "-q") == 0
    assert capfd.readouterr().err == ""


def test_steps_of_a_sorted_search(tmp_path: Path, demo_index: Path) -> None:
    """After all reads are mapped, the progress names each step."""
    shown: list[str] = []

    class Recorder(Silent):
        def show(self, text: str, share: float | None = None, bar: float | None = None) -> None:
            shown.append(text)

    output = tmp_path / "out.bam"
    options: dict[str, Any] = {"sort": True, "mark_duplicates": True, "device": "cpu"}
    readmap.search(READS, demo_index, output=output, monitor=Recorder(), **options)
    steps = [text for text in shown if "reads" not in text]
    expected = ["loading the index", "sorting records", "marking duplicates", "writing sorted records, 0% of "]
    assert [text for text, start in zip(steps, expected, strict=False) if text.startswith(start)] == steps[:4]
    assert steps[-1] == "finishing the output"


def test_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 110.0, 110.0, 130.0, 130.0, 900.0, 900.0])
    monkeypatch.setattr(report.time, "perf_counter", lambda: next(clock))
    left = TimeLeft()
    assert left.describe(None) == ""
    assert left.describe(0.25) == "25% read, 30 s left: "
    assert left.describe(1.0) == "100% read: "


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("compressed", [False, True])
def test_read_progress_of_a_file(tmp_path: Path, threads: int, compressed: bool) -> None:
    data = bytes(range(256)) * 100_000
    (tmp_path / "file").write_bytes(gzip.compress(data, 1) if compressed else data)
    size = (tmp_path / "file").stat().st_size
    target, places = bytearray(9 << 20), []
    with open_bytes(str(tmp_path / "file"), threads) as source:
        while source.readinto(memoryview(target)):
            places.append(source.read_progress())
    assert all(place and 0 < place[0] <= place[1] == size for place in places)
    assert places == sorted(places, key=lambda place: place or (0, 0))
    assert source.read_progress() == (size, size)


def test_read_progress_of_a_pipe_is_unknown() -> None:
    assert open_bytes("/dev/zero").read_progress() is None
