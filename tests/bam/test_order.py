"""Sorting BAM on every device: stably by contig, position and strand, and by name in the order of samtools."""

import dataclasses
import functools
import random
from pathlib import Path

import numpy as np
import pysam
import pytest
from alignment_files import header_of, names_in, records_of, search_in, write_inputs
from examples import draw_reads, small_genome
from hypothesis import given, settings
from hypothesis import strategies as st
from test_file_index import record

from readmap.backend import open_backend
from readmap.bam.order import host_keys, sort_by_name, sort_records

CONTIGS = 5
REVERSED, UNMAPPED = 16, 4


def draw_records(rng: random.Random, count: int) -> list[bytes]:
    """Draw records of different lengths, many at one position, some unplaced, and entries without a record."""
    found = []
    for number in range(count):
        contig = rng.randrange(-1, CONTIGS)
        position = -1 if contig < 0 else rng.choice([-1, 0, 7, 7, rng.randrange(1 << 31)])
        flag = rng.choice([0, REVERSED, UNMAPPED, UNMAPPED | REVERSED])
        length = rng.randrange(1, 300)
        found.append(b"" if rng.random() < 0.1 else record(contig, position, flag, [(length, 0)], b"r%d" % number))
    return found


def place_of(one: bytes) -> tuple[int, int, bool]:
    contig, position = (int(value) for value in np.frombuffer(one[4:12], np.int32))
    return (contig if contig >= 0 else CONTIGS, position, bool(one[18] & REVERSED))


@pytest.mark.parametrize("count", [1, 2, 300, 5000])
def test_order(backends: str, count: int) -> None:
    backend = open_backend(backends, 2)
    records = draw_records(random.Random(count), count)
    lengths = np.array([len(one) for one in records], np.int64)
    given = [np.frombuffer(b"".join(records), np.uint8), lengths, np.cumsum(lengths)]
    found = sort_records(*map(backend.to_device, given), CONTIGS, backend)
    expected = sorted(filter(None, records), key=place_of)
    assert backend.to_host(found.bytes).tobytes() == b"".join(expected)
    assert backend.to_host(found.ends).tolist() == np.cumsum([len(one) for one in expected]).tolist()
    keys = backend.to_host(found.keys)
    assert (np.diff(keys.astype(object)) >= 0).all()
    assert len({*keys.tolist()}) == len({*map(place_of, expected)})


FLAGS = [0, 4, 16, 0x40, 0x80, 0x41, 0x40 | 0x100, 0x40 | 0x800, 0x80 | 0x100, 0x80 | 0x900, 0x800, 0x100]
NAMES = [
    *["a", "a0", "a00", "a1", "a01", "a01b", "a1c", "a10", "a9", "b", "1", "01", "0", "00", "12x7", "12x07"],
    "9" * 250,
]
MARKED_NAMES = st.tuples(st.sampled_from(NAMES) | st.text("0019ab:", min_size=1, max_size=12), st.sampled_from(FLAGS))


def compared(name: bytes, other: bytes) -> int:
    """Compare two zero-terminated names as strnum_cmp of samtools does; return a number < 0, 0 or > 0."""
    i = j = 0
    while name[i] and other[j]:
        if not (48 <= name[i] < 58 and 48 <= other[j] < 58):
            if name[i] != other[j]:
                return name[i] - other[j]
            i, j = i + 1, j + 1
            continue
        numbers = []
        for text, begin in ((name, i), (other, j)):
            end = begin
            while 48 <= text[end] < 58:
                end += 1
            numbers.append((int(text[begin:end]), end))
        if numbers[0][0] != numbers[1][0]:
            return numbers[0][0] - numbers[1][0]
        i, j = numbers[0][1], numbers[1][1]
    return name[i] - other[j]


def segment(flag: int) -> tuple[int, int, int]:
    return flag & 0xC0, flag & 0x100, flag & 0x800


def compared_records(one: tuple[bytes, int], other: tuple[bytes, int]) -> int:
    found = compared(one[0] + b"\0", other[0] + b"\0")
    return found or (segment(one[1]) > segment(other[1])) - (segment(one[1]) < segment(other[1]))


@settings(derandomize=True, max_examples=80, deadline=None)
@given(drawn=st.lists(MARKED_NAMES, min_size=1, max_size=60), seed=st.integers(0, 9))
def test_order_by_name(backends: str, drawn: list[tuple[str, int]], seed: int) -> None:
    backend, rng = open_backend(backends, 2), random.Random(seed)
    marked = [(name.encode(), flag) for name, flag in drawn]
    records = [record(0, number, flag, [(5, 0)], name) for number, (name, flag) in enumerate(marked)]
    records = [b"" if rng.random() < 0.1 else one for one in records]
    lengths = np.array([len(one) for one in records], np.int64)
    arrays = np.frombuffer(b"".join(records) or b"\0", np.uint8), lengths, np.cumsum(lengths)
    found = sort_by_name(*map(backend.to_device, arrays), backend)
    kept = [(one, marked[number]) for number, one in enumerate(records) if one]
    expected = sorted(kept, key=functools.cmp_to_key(lambda one, other: compared_records(one[1], other[1])))
    assert backend.to_host(found.bytes).tobytes() == b"".join(one for one, _ in expected)
    assert backend.to_host(found.ends).tolist() == np.cumsum([len(one) for one, _ in expected]).tolist()
    keys = host_keys(found, backend).tolist()
    assert keys == sorted(keys)
    same = [not compared_records(one[1], other[1]) for one, other in zip(expected[1:], expected[:-1], strict=True)]
    assert [key == other for key, other in zip(keys[1:], keys[:-1], strict=True)] == same


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index, reads with repeated names, and their BAM sorted by samtools sort -n."""
    folder, rng = tmp_path_factory.mktemp("names"), random.Random(4)
    genome = small_genome(rng)
    reads = [
        dataclasses.replace(read, name=f"r{rng.choice(['', '0', '00'])}{rng.randrange(90)}:x")
        for read in draw_reads(rng, genome, 300)
    ]
    write_inputs(folder, genome, reads)
    assert search_in(folder, "plain.bam", "-a") == 0
    pysam.samtools.sort("-n", "-o", str(folder / "expected.bam"), str(folder / "plain.bam"), catch_stdout=False)
    return folder


@pytest.mark.parametrize("ending", ["bam", "cram"])
@pytest.mark.parametrize("options", [[], ["--batch-reads", "30"], ["--sort-memory", "1K", "--batch-reads", "50"]])
def test_sorted_as_samtools_sorts(folder: Path, tmp_path: Path, ending: str, options: list[str]) -> None:
    out = tmp_path / f"out.{ending}"
    for index in (".bai", ".csi", ".crai"):
        Path(f"{out}{index}").write_bytes(b"of an earlier file")
    assert search_in(folder, str(out), "-a", "--sort", "--sort-order", "queryname", *options) == 0
    assert records_of(out, folder / "ref.fa") == records_of(folder / "expected.bam")
    assert header_of(out)[0] == "@HD\tVN:1.6\tSO:queryname\tSS:queryname:natural"
    assert names_in(tmp_path) == [out.name]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--sort-order", "queryname"], "only with --sort"),
        (["--sort", "--sort-order", "queryname", "--index-format", "csi"], "has no index"),
        (["--sort", "--sort-order", "name"], "queryname"),
    ],
)
def test_conflicts(folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], told: str) -> None:
    assert search_in(folder, str(folder / "no.bam"), *options) == 2
    assert told in capsys.readouterr().err
    assert not (folder / "no.bam").exists()
