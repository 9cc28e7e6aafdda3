"""Where records end: the same by the kernel and without a compiler, and what a plain reader finds."""

import itertools
import random

import numpy as np
import pytest

from readmap.backend.cpu import CpuBackend, host_backend
from readmap.errors import BackendError
from readmap.reads import cutting
from readmap.reads.cutting import BLOCK_BYTES, MANY_THREADS, find_records


@pytest.fixture(params=["kernel", "no compiler"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no compiler":
        monkeypatch.setattr(cutting, "host_backend", lambda module, threads: None)
    else:
        assert host_backend("reads/cut", 1)


def expected(data: bytes, lines: int, checks: bool) -> tuple[list[int], bool]:
    """One record after the other."""
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
    ends, found = find_records(np.frombuffer(data, np.uint8), 4, checks=True)
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
        ends, found = find_records(np.frombuffer(data, np.uint8), lines, checks and lines == 4)
        assert (ends.tolist(), found) == expected(data, lines, checks and lines == 4)


@pytest.mark.parametrize("lines", [2, 4])
@pytest.mark.parametrize("longest", [3, 700, 3 * BLOCK_BYTES])
def test_text_of_several_blocks(lines: int, longest: int) -> None:
    """Records within blocks, over their borders and over whole blocks, and a wrong one among them."""
    draw = random.Random(f"{lines}{longest}")
    for _ in range(3):
        text = bytearray()
        while len(text) < 3 * BLOCK_BYTES:
            size = draw.randrange(longest)
            text += b"@r\n%s\n+\n%s\n" % (b"A" * size, b"I" * size)
        place = draw.randrange(len(text))
        for data in (bytes(text), bytes(text[:place]), bytes(text[:place] + b"\n" + text[place:])):
            ends, found = find_records(np.frombuffer(data, np.uint8), lines, lines == 4, threads=MANY_THREADS)
            assert (ends.tolist(), found) == expected(data, lines, lines == 4)


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_a_record_that_ends_at_a_border(shift: int) -> None:
    bases = (BLOCK_BYTES - len("@r\n\n+\n\n") + shift) // 2
    first = b"@%s\n%s\n+\n%s\n" % (b"r" * (1 + (BLOCK_BYTES + shift) % 2), b"A" * bases, b"I" * bases)
    for data in (first, first + b"@s\nC\n+\nI\n", first + b"@s\nC\n+\n"):
        ends, found = find_records(np.frombuffer(data, np.uint8), 4, checks=True, threads=MANY_THREADS)
        assert (ends.tolist(), found) == expected(data, 4, True)


def test_a_machine_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BackendError("no C++ compiler was found")

    host_backend.cache_clear()
    monkeypatch.setattr(CpuBackend, "compile", refuse)
    assert find_records(np.frombuffer(b"@r\nA\n+\nI\n", np.uint8), 4, checks=True)[0].tolist() == [8]
    host_backend.cache_clear()


@pytest.mark.parametrize("lines", [2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_lines_that_look_like_others(monkeypatch: pytest.MonkeyPatch, lines: int, seed: int) -> None:
    """Any letters, in blocks so short that hardly one begins with a record."""
    draw = random.Random(f"{lines}{seed}")
    for _ in range(400):
        monkeypatch.setattr(cutting, "BLOCK_BYTES", draw.randrange(8, 99))
        monkeypatch.setattr(cutting, "RECORD_BYTES", draw.randrange(2, 9))
        text = []
        for _ in range(draw.randrange(60)):
            size = draw.randrange(9)
            texts = ["".join(draw.choices("@+>A", k=size)) for _ in range(2)]
            record = [f"@{texts[0]}", texts[1], "+", texts[0]] if lines == 4 else [f">{texts[0]}", texts[1]]
            text += record if draw.random() < 0.99 else record[1:]
        data = "\n".join(text).encode()
        ends, found = find_records(np.frombuffer(data, np.uint8), lines, lines == 4, threads=MANY_THREADS)
        assert (ends.tolist(), found) == expected(data, lines, lines == 4)


@pytest.mark.parametrize("lines", [2, 4])
@pytest.mark.parametrize("quality", ["I", "@", "+"])
def test_usual_text_is_cut_by_all_threads_at_once(monkeypatch: pytest.MonkeyPatch, lines: int, quality: str) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("one thread alone")

    monkeypatch.setattr(cutting, "_find_in_one", refuse)
    records = [f"@r{n}\n{'A' * (n % 200)}\n+\n{quality * (n % 200)}\n" for n in range(20_000)]
    if lines == 2:
        records = [f">r{n}\n{'A' * (n % 200)}\n" for n in range(20_000)]
    data = np.frombuffer("".join(records).encode(), np.uint8)
    ends, found = find_records(data, lines, lines == 4, threads=MANY_THREADS)
    assert (ends.tolist(), found) == ([*(np.cumsum([*map(len, records)]) - 1)], False)
