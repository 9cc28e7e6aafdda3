"""Test pairs from files to batches: mates side by side, equal for all layouts, and the first invalid pair reported."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from examples import Read, below, random_bases, random_quality, write_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from search_runs import run_files

from readmap.backend import Backend, open_backend
from readmap.errors import DataError
from readmap.reads import bad_records
from readmap.reads.chunks import PairLayout
from readmap.reads.parsing import Reads, parse_reads
from readmap.run import chunk_plan
from readmap.run.batch_processor import RunSummary
from readmap.run.chunk_turns import ChunkTurn
from readmap.run.device_reads import DeviceReads
from readmap.run.writer import Block

Pair = tuple[Read, Read]


class Listing:
    """A batch processor that writes name, bases and quality of each read."""

    def __init__(self, backend: Backend, most: int = 1 << 30) -> None:
        """most: simulated memory limit, in reads per batch."""
        self.summary = RunSummary()
        self.batches: list[int] = []
        self._backend = backend
        self._most = most

    @property
    def comments(self) -> bool:
        return False

    def blocks(self, device_reads: DeviceReads, turn: ChunkTurn) -> Iterator[Block]:
        reads = device_reads.reads
        if reads.count > self._most:
            raise self._backend.memory_error("no more memory")
        assert reads.paired
        assert reads.count % 2 == 0
        turn.wait()
        self.batches.append(reads.count)
        self.summary.reads += reads.count
        listed = np.frombuffer(listing(reads, self._backend), np.uint8)
        yield Block(self._backend.to_device(listed), self._backend)

    def remaining_blocks(self, device_index: int = 0) -> Iterator[Block]:
        yield from ()


def listing(reads: Reads, backend: Backend) -> bytes:
    data = backend.to_host(reads.bytes).tobytes()
    fields = (reads.name_starts, reads.name_lengths, reads.sequence_starts, reads.lengths, reads.quality_starts)
    lines = []
    for name, name_length, start, length, quality in zip(*(backend.to_host(f).tolist() for f in fields), strict=True):
        marks = data[quality : quality + length] if quality >= 0 else b"*"
        lines.append(b"%s %s %s\n" % (data[name : name + name_length], data[start : start + length], marks))
    return b"".join(lines)


def expected_listing(pairs: Sequence[Pair]) -> bytes:
    """Return the listing of the original reads."""
    return "".join(
        f"{read.name.split()[0].removesuffix(f'/{mate}')} {read.bases} {read.quality or '*'}\n"
        for pair in pairs
        for mate, read in enumerate(pair, 1)
    ).encode()


def draw_pairs(generator: random.Random, count: int, lengths: tuple[int, int] = (28, 91)) -> list[Pair]:
    pairs = []
    for number in range(count):
        name = "pair" + "x" * below(generator, 5) + f"_{number}"
        ends = ("", " 1:N:0"), ("/1", "/2"), ("", ""), ("/1 a", "/2\tb")
        names = ends[below(generator, 4)]
        bases = [random_bases(generator, length, "ACGTacgtN") for length in lengths]
        first, second = (
            Read(name + n, b, random_quality(generator, len(b))) for n, b in zip(names, bases, strict=True)
        )
        pairs.append((first, second))
    return pairs


PAIRS = draw_pairs(random.Random(71), 60)


def search(
    paths: Sequence[Path], layout: PairLayout, backend: Backend, batch_reads: int | None = None, most: int = 1 << 30
) -> tuple[bytes, str]:
    """Return the bytes written and the error message."""
    out, error = paths[0].parent / "out", ""
    try:
        run_files(paths, Listing(backend, most), backend, out, layout=layout, batch_reads=batch_reads)
    except DataError as raised:
        error = str(raised).replace(f"{paths[0].parent}/", "")
    return out.read_bytes(), error


def small_chunks(name: str, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch) -> Backend:
    monkeypatch.setattr(chunk_plan, "MIN_CHUNK_BYTES", 1)
    backend = open_backend(name)
    backend.chunk_bytes = chunk_bytes
    return backend


LAYOUTS = pytest.mark.parametrize(
    "layout", [PairLayout.TWO_FILES, PairLayout.INTERLEAVED], ids=["two files", "one file"]
)


# Mates side by side.


@LAYOUTS
@pytest.mark.parametrize("chunk_bytes", [1, 300, 2_000, 1 << 20])
def test_any_chunks_and_batches(
    backends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: PairLayout, chunk_bytes: int
) -> None:
    backend = small_chunks(backends, chunk_bytes, monkeypatch)
    paths = write_pairs(tmp_path, PAIRS, layout)
    for batch_reads in (None, 1, 2, 7):
        assert search(paths, layout, backend, batch_reads) == (expected_listing(PAIRS), "")


def test_many_pairs(backends: str, tmp_path: Path) -> None:
    """More pairs than threads per block, and more lines than slices."""
    backend = open_backend(backends, 3)
    pairs = draw_pairs(random.Random(72), 3_000, (91, 28))
    for layout in (PairLayout.TWO_FILES, PairLayout.INTERLEAVED):
        assert search(write_pairs(tmp_path, pairs, layout), layout, backend) == (expected_listing(pairs), "")


@LAYOUTS
@pytest.mark.parametrize("most", [2, 3, 50])
def test_batches_that_do_not_fit_are_halved(backends: str, tmp_path: Path, layout: PairLayout, most: int) -> None:
    backend = open_backend(backends)
    backend.memory_error = MemoryError
    paths = write_pairs(tmp_path, PAIRS, layout)
    work = Listing(backend, most)
    run_files(paths, work, backend, tmp_path / "out", layout=layout)
    assert (tmp_path / "out").read_bytes() == expected_listing(PAIRS)
    assert max(work.batches) <= most
    with pytest.raises(MemoryError):
        run_files(paths, Listing(backend, 1), backend, tmp_path / "out", layout=layout)


@LAYOUTS
def test_invalid_record_in_a_halved_batch(backends: str, tmp_path: Path, layout: PairLayout) -> None:
    backend = open_backend(backends)
    backend.memory_error = MemoryError
    for number in (0, 1, 14, 15, 59):
        pairs = [*PAIRS[:number], (PAIRS[number][0], Read("other", "A", "I")), *PAIRS[number + 1 :]]
        written, error = search(write_pairs(tmp_path, pairs, layout), layout, backend, most=6)
        assert written == expected_listing(PAIRS[:number])
        place = f"r2, record {number + 1}" if layout is PairLayout.TWO_FILES else f"r, record {2 * number + 2}"
        assert error.startswith(f"{place} (other): its mate")


# Invalid records.


def slow_order(first: bytes, second: bytes, layout: PairLayout) -> bytes:
    """Return the records in the order of the device."""
    if layout is PairLayout.TWO_FILES:
        return first + second
    lines = [data.splitlines(keepends=True) for data in (first, second)]
    return b"".join(b"".join(each[i : i + 4]) for i in range(0, len(lines[0]), 4) for each in lines)


@LAYOUTS
def test_first_invalid_pair_is_reported(backends: str, layout: PairLayout) -> None:
    """Whichever thread finds it, although all records of the other file come first in memory."""
    backend = open_backend(backends, 4)
    good, bad = b"@r\nACGT\n+\nIIII\n", b"@r\nACGT\n+\nIII\n"
    other = b"@s\nACGT\n+\nIIII\n"
    for first, second, expected in (
        ({700: bad}, {}, (1_400, bad_records.QUALITY_LENGTH)),
        ({}, {700: bad}, (1_401, bad_records.QUALITY_LENGTH)),
        ({701: bad}, {700: bad}, (1_401, bad_records.QUALITY_LENGTH)),
        ({700: bad, 0: other}, {699: bad, 0: other}, (1_399, bad_records.QUALITY_LENGTH)),
        ({700: bad}, {700: other}, (1_400, bad_records.QUALITY_LENGTH)),
        ({700: other}, {700: bad}, (1_401, bad_records.QUALITY_LENGTH)),
        ({700: other}, {701: bad}, (1_401, bad_records.MATE_NAMES)),
        ({0: other}, {}, (1, bad_records.MATE_NAMES)),
        ({999: other}, {}, (1_999, bad_records.MATE_NAMES)),
    ):
        files = [b"".join(changed.get(i, good) for i in range(1_000)) for changed in (first, second)]
        data = np.frombuffer(slow_order(files[0], files[1], layout), np.uint8)
        reads = parse_reads(backend.to_device(data), 2_000, 4, backend, layout)
        assert reads.bad == expected
        assert reads.count == expected[0] // 2 * 2 == len(reads.lengths)


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        *(("r", "r", True), ("r/1", "r/2", True), ("r/2", "r/1", True), ("r/1", "r/1", True), ("r/1", "r", True)),
        *(("r 1:N", "r 2:N", True), ("r\tx", "r", True)),
        *(("r", "s", False), ("r", "rr", False), ("r", "R", False), ("r/1", "r/3", False)),
        *(("r.1", "r.2", False), ("a" * 253 + "b", "a" * 253 + "c", False), ("/1", "/2", False)),
        ("a" * 254 + "/1", "a" * 254 + "/2", True),
    ],
    ids=lambda value: f"{value[:6]}..{len(value)}" if isinstance(value, str) else None,
)
def test_names_of_mates(backends: str, one: str, two: str, same: bool) -> None:
    backend = open_backend(backends)
    data = np.frombuffer(f"@x\nA\n+\nI\n@{one}\nA\n+\nI\n@x/2\nA\n+\nI\n@{two}\nA\n+\nI\n".encode(), np.uint8)
    reads = parse_reads(backend.to_device(data), 4, 4, backend, PairLayout.TWO_FILES)
    assert (reads.count, reads.bad) == ((4, None) if same else (2, (3, bad_records.MATE_NAMES)))
    # Single reads may have any names.
    assert parse_reads(backend.to_device(data), 4, 4, backend).bad is None


@LAYOUTS
@pytest.mark.parametrize("batch_reads", [None, 4])
@pytest.mark.parametrize("number", [0, 30, 59])
def test_different_names_of_mates(
    backends: str, tmp_path: Path, layout: PairLayout, number: int, batch_reads: int | None
) -> None:
    first, second = PAIRS[number]
    pairs = [*PAIRS[:number], (Read("SRR1.9/1 x", first.bases, first.quality), second), *PAIRS[number + 1 :]]
    written, error = search(write_pairs(tmp_path, pairs, layout), layout, open_backend(backends), batch_reads)
    assert written == expected_listing(PAIRS[:number])
    name = second.name.split()[0]
    if layout is PairLayout.TWO_FILES:
        expected = f"r2, record {number + 1} ({name}): its mate in r1 is named SRR1.9/1"
    else:
        expected = f"r, record {2 * number + 2} ({name}): its mate in record {2 * number + 1} is named SRR1.9/1"
    assert error == f"{expected}; mates must have the same name"


# Random inputs.


def slow_complaint(lines: list[str]) -> str:
    """Return what is wrong with four lines."""
    header, bases, separator, quality = lines
    if not header.startswith("@"):
        return "header"
    if not separator.startswith("+"):
        return "line starting with '+'"
    if len(bases) != len(quality):
        return f"quality has {len(quality)} characters, sequence has {len(bases)}"
    return "nucleotide" if set(bases) - set("ACGTN") else ""


def slow_search(files: list[list[list[str]]]) -> tuple[int, str]:
    """Return the number of pairs before the first invalid pair, and parts of the error. files: records as lines."""
    one, two = files
    for number in range(max(len(one), len(two))):
        if number == min(len(one), len(two)):
            return number, f"record {number + 1} ("
        for name, file in zip(("r1", "r2"), files, strict=True):
            if complaint := slow_complaint(file[number]):
                return number, f"{name}, record {number + 1}#{complaint}"
        if one[number][0].split("/")[0] != two[number][0].split("/")[0]:
            return number, f"r2, record {number + 1}#mates must have the same name"
    return max(len(one), len(two)), ""


def record(number: int, mate: int, kind: int) -> list[str]:
    """Return a record, invalid for a few kinds."""
    header = f"@{number}/{mate}"
    bases = "ACGTN"[: number % 6] * (3 * mate)
    lines = [header, bases, "+", "I" * len(bases)]
    wrong = {0: (0, f"{number}"), 1: (0, "@x"), 2: (2, ""), 3: (3, "I" * (len(bases) + 1)), 4: (1, bases + "!")}
    if kind in wrong:
        place, line = wrong[kind]
        lines[place] = line
    return lines


kinds = st.lists(st.sampled_from([9] * 30 + [0, 1, 2, 3, 4]), max_size=12)


@settings(derandomize=True, max_examples=80, deadline=None)
@given(kinds, kinds, st.booleans(), st.integers(1, 400), st.none() | st.integers(1, 8), st.booleans())
def test_any_two_files(
    backends: str,
    tmp_path_factory: pytest.TempPathFactory,
    one: list[int],
    two: list[int],
    of_one_length: bool,
    chunk_bytes: int,
    batch_reads: int | None,
    returns: bool,
) -> None:
    """Same result as slow_search."""
    if of_one_length:
        two = [*two, *[9] * len(one)][: len(one)]
    files = [
        [record(number, mate, kind) for number, kind in enumerate(file)] for mate, file in enumerate((one, two), 1)
    ]
    pairs, expected = slow_search(files)
    folder = tmp_path_factory.mktemp("any")
    paths = [folder / "r1", folder / "r2"]
    for path, records in zip(paths, files, strict=True):
        data = "".join(f"{line}\n" for lines in records for line in lines).encode()
        path.write_bytes(data.replace(b"\n", b"\r\n") if returns else data)
    if any(file and not file[0][0].startswith("@") for file in files):
        pairs, expected = 0, "expected FASTQ or FASTA"
    with pytest.MonkeyPatch.context() as patch:
        written, error = search(paths, PairLayout.TWO_FILES, small_chunks(backends, chunk_bytes, patch), batch_reads)
    good = [lines for pair in zip(*files, strict=False) for lines in pair][: 2 * pairs]
    assert written.decode() == "".join(f"{lines[0][1:].split('/')[0]} {lines[1]} {lines[3]}\n" for lines in good)
    assert bool(expected) == bool(error)
    assert all(part in error for part in expected.split("#"))
