"""Test where records end: by the kernel, without a compiler, and by a slow reader."""

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readmap.backend import Backend
from readmap.backend.cpu import CpuBackend, host_backend
from readmap.errors import BackendError
from readmap.formats.byte_source import ByteRange, FilePosition, PlainSource
from readmap.formats.file_errors import NamedFile
from readmap.reads import record_scan
from readmap.reads.record_scan import SEGMENT_BYTES, read_and_scan_records, scan_records


@pytest.fixture(params=["kernel", "no compiler"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no compiler":
        monkeypatch.setattr(record_scan, "host_backend", lambda module, threads: None)
    else:
        assert host_backend("reads/record_scan", 1)


def cut(data: np.ndarray[Any, Any], lines: int, checks: bool, threads: int = 1) -> tuple[np.ndarray[Any, Any], bool]:
    found = scan_records(data, lines, checks, threads)
    assert found.filled == len(data)
    return found.ends, found.is_irregular


def expected(data: bytes, lines: int, checks: bool) -> tuple[list[int], bool]:
    """Scan record by record."""
    ends: list[int] = []
    start = 0
    while True:
        places = [start - 1]
        for _ in range(lines):
            places.append(data.find(b"\n", places[-1] + 1))
            if places[-1] < 0:
                return ends, False
        header, *others = (data[begin + 1 : end] for begin, end in itertools.pairwise(places))
        if checks and not (header.startswith(b"@") and others[1].startswith(b"+") and len(others[0]) == len(others[2])):
            return ends, True
        ends.append(places[-1])
        start = places[-1] + 1


@pytest.mark.parametrize(
    ("data", "count", "is_irregular"),
    [
        (b"", 0, False),
        (b"@r\nAC\n+\nII\n", 1, False),
        (b"@r\r\nAC\r\n+\r\nII\r\n@s\r\n\r\n+\r\n\r\n", 2, False),
        (b"@r\nAC\n+\nII\n@s\nA", 1, False),
        (b"@r\nAC\n+\nII\n\n@s\nA\n+\nI\n", 1, True),
        (b"@r\nA\nC\n+\nI\nI\n", 0, True),
        (b"\n@r\nAC\n+\nII\n", 0, True),
        (b"@r\nAC\n+\nIII\n@r\nAC\n+\nII\n", 0, True),
        (b"\n\n\n\n\n\n\n\n", 0, True),
    ],
)
def test_which_records_have_four_lines(way: None, data: bytes, count: int, is_irregular: bool) -> None:
    ends, found = cut(np.frombuffer(data, np.uint8), 4, checks=True)
    assert (len(ends), found) == (count, is_irregular)
    assert (ends.tolist(), found) == expected(data, 4, True)


@pytest.mark.parametrize("lines", [2, 4])
@pytest.mark.parametrize("checks", [False, True])
def test_any_text(way: None, lines: int, checks: bool) -> None:
    draw = random.Random(f"{lines}{checks}")
    for _ in range(300):
        record = b"@%s\n%s\n+\n%s\n"
        sizes = [draw.randrange(4) if draw.random() < 0.9 else 90 for _ in range(draw.randrange(9))]
        text = b"".join(record % (b"n" * draw.randrange(9), b"A" * size, b"I" * size) for size in sizes)
        place = draw.randrange(len(text) + 1)
        data = draw.choice([text, text[:place], text[:place] + draw.choice([b"\n", b"A", b"@"]) + text[place:]])
        ends, found = cut(np.frombuffer(data, np.uint8), lines, checks and lines == 4)
        assert (ends.tolist(), found) == expected(data, lines, checks and lines == 4)


@pytest.mark.parametrize("lines", [2, 4])
@pytest.mark.parametrize("longest", [3, 700, 3 * SEGMENT_BYTES])
def test_text_of_several_segments(lines: int, longest: int) -> None:
    """Records inside segments, across borders and longer than segments, with one invalid record."""
    draw = random.Random(f"{lines}{longest}")
    for _ in range(3):
        text = bytearray()
        while len(text) < 3 * SEGMENT_BYTES:
            size = draw.randrange(longest)
            text += b"@r\n%s\n+\n%s\n" % (b"A" * size, b"I" * size)
        place = draw.randrange(len(text))
        for data in (bytes(text), bytes(text[:place]), bytes(text[:place] + b"\n" + text[place:])):
            ends, found = cut(np.frombuffer(data, np.uint8), lines, lines == 4, threads=2)
            assert (ends.tolist(), found) == expected(data, lines, lines == 4)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BackendError("no C++ compiler was found")

    host_backend.cache_clear()
    monkeypatch.setattr(CpuBackend, "compile", refuse)
    assert scan_records(np.frombuffer(b"@r\nA\n+\nI\n", np.uint8), 4, checks_fastq=True).ends.tolist() == [8]
    host_backend.cache_clear()


@pytest.mark.parametrize("lines", [2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_misleading_lines(monkeypatch: pytest.MonkeyPatch, lines: int, seed: int) -> None:
    """Any letters, in segments so short that few contain the start of a record."""
    draw = random.Random(f"{lines}{seed}")
    for _ in range(400):
        monkeypatch.setattr(record_scan, "SEGMENT_BYTES", draw.randrange(8, 99))
        monkeypatch.setattr(record_scan, "MIN_RECORD_BYTES", draw.randrange(2, 9))
        text = []
        for _ in range(draw.randrange(60)):
            size = draw.randrange(9)
            texts = ["".join(draw.choices("@+>A", k=size)) for _ in range(2)]
            record = [f"@{texts[0]}", texts[1], "+", texts[0]] if lines == 4 else [f">{texts[0]}", texts[1]]
            text += record if draw.random() < 0.99 else record[1:]
        data = "\n".join(text).encode()
        ends, found = cut(np.frombuffer(data, np.uint8), lines, lines == 4, threads=2)
        assert (ends.tolist(), found) == expected(data, lines, lines == 4)


@pytest.mark.parametrize("lines", [2, 4])
@pytest.mark.parametrize("quality", ["I", "@", "+"])
def test_most_records_are_found_by_scanning_segments(monkeypatch: pytest.MonkeyPatch, lines: int, quality: str) -> None:
    """Except one or two records at each border."""
    seen, joined = list[int](), record_scan._join

    def see(what: dict[str, Any], backend: Backend) -> Any:
        seen.append(int(what["segments"].record_counts.sum()))
        return joined(what, backend)

    monkeypatch.setattr(record_scan, "_join", see)
    records = [f"@r{n}\n{'A' * (n % 200)}\n+\n{quality * (n % 200)}\n" for n in range(20_000)]
    if lines == 2:
        records = [f">r{n}\n{'A' * (n % 200)}\n" for n in range(20_000)]
    data = np.frombuffer("".join(records).encode(), np.uint8)
    ends, found = cut(data, lines, lines == 4, threads=2)
    assert (ends.tolist(), found) == ([*(np.cumsum([*map(len, records)]) - 1)], False)
    (count,) = seen
    assert count > len(records) - 2 * (len(data) / SEGMENT_BYTES + 1)


@pytest.mark.parametrize("seed", range(6))
def test_read_and_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The file may end anywhere in a segment, and the start of the text may be in memory already."""
    draw = random.Random(seed)
    for _ in range(100):
        monkeypatch.setattr(record_scan, "SEGMENT_BYTES", draw.randrange(20, 300))
        monkeypatch.setattr(record_scan, "MIN_RECORD_BYTES", draw.randrange(2, 20))
        text = b"".join(b"@r\n%s\n+\n%s\n" % (b"A" * n, b"I" * n) for n in draw.choices(range(40), k=40))
        text = text[: draw.randrange(len(text))]
        there, room = draw.randrange(len(text) + 1), draw.randrange(2 * len(text) + 1)
        there = min(there, room)
        most = draw.choice([None, draw.randrange(len(text) - there + 1)])
        (tmp_path / "text").write_bytes(b"x" * seed + text[there:])
        text = text if most is None else text[: there + most]
        data = np.full(room, ord("\n"), np.uint8)
        data[:there] = np.frombuffer(text[:there], np.uint8)
        file = NamedFile(str(tmp_path / "text"))
        file.seek(seed)
        with ByteRange(PlainSource(file, "text", b"", 1), 0, most) as source:
            found = read_and_scan_records(source, data, there, 4, True, threads=2)
            if most == 0:
                assert found is None
                continue
            assert source.delivered + there == min(room, len(text))
            assert file.tell() == seed + source.delivered
        assert found is not None
        assert found.filled == min(room, len(text))
        assert data[: found.filled].tobytes() == text[:room]
        assert (found.ends.tolist(), found.is_irregular) == expected(text[:room], 4, True)


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_bytes(b"")
    monkeypatch.setattr(PlainSource, "position", lambda _: FilePosition(-1, 0))
    data = np.frombuffer(bytearray(b"@r\nA\n+\nI\n@s\n" + bytes(99)), np.uint8)
    with PlainSource(NamedFile(str(tmp_path / "text")), "text", b"", 1) as source:
        found = read_and_scan_records(source, data, 12, 4, True)
    assert found is not None
    assert (found.ends.tolist(), found.is_irregular, found.filled) == ([8], False, 12)
