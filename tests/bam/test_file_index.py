"""Indexes of sorted files: equal to those of htslib, which also reads readmap's."""

import gzip
import random
import struct
from pathlib import Path

import numpy as np
import pysam
import pytest

from readmap.bam.file_index import FileIndex, IndexFormat
from readmap.formats.bgzf import BgzfOutput
from readmap.formats.output import open_output

LENGTHS = [400_000, 90_000, 3_000_000, 500, 40_000_000, 1000]
Bins = dict[int, list[tuple[int, int]]]


def record(contig: int, position: int, flag: int, operations: list[tuple[int, int]], name: bytes) -> bytes:
    """Return a record whose sequence length matches its CIGAR."""
    letters = sum(length for length, code in operations if code in (0, 1, 4, 7, 8))
    fixed = struct.pack(
        "<iiBBHHHiiii", contig, position, len(name) + 1, 60, 0, len(operations), flag, letters, -1, -1, 0
    )
    words = b"".join(struct.pack("<I", length << 4 | code) for length, code in operations)
    body = fixed + name + b"\0" + words + random.Random(position).randbytes((letters + 1) // 2) + b"\xff" * letters
    return struct.pack("<i", len(body)) + body


def draw(seed: int, count: int, lengths: list[int]) -> list[bytes]:
    """Draw sorted records, sparse and dense, that skip bins, have no CIGAR, or are unplaced."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        contig = rng.choice([0, 0, 2, 2, 2, 4])
        dense = rng.random() < 0.5
        position = rng.randrange(5000) + 16_000 if dense else rng.randrange(lengths[contig] - 2000)
        kind = rng.random()
        operations = [(5, 4), (rng.randrange(1, 200), 0), (3, 1), (20, 7), (4, 2), (6, 8)]
        flag = rng.choice([0, 16])
        if kind < 0.02 and lengths[contig] > 1_000_000:
            position = min(position, lengths[contig] - 300_000)
            operations = [(50, 0), (rng.randrange(1000, 200_000), 3), (50, 0)]
        elif kind < 0.1:
            operations, flag = [], 4
        found.append((contig, position, flag & 16, number, record(contig, position, flag, operations, b"r%d" % number)))
    found.sort(key=lambda one: one[:4])
    return [one[4] for one in found] + [record(-1, -1, 4, [], b"none%d" % number) for number in range(count // 20)]


def write(path: Path, records: list[bytes], index_format: IndexFormat, piece: int) -> None:
    """Write a BAM file and its index, `piece` records at a time."""
    header = b"@HD\tVN:1.6\tSO:coordinate\n"
    head = b"BAM\1" + struct.pack("<i", len(header)) + header + struct.pack("<i", len(LENGTHS))
    for number, length in enumerate(LENGTHS):
        name = b"c%d\0" % number
        head += struct.pack("<i", len(name)) + name + struct.pack("<i", length)
    index = FileIndex(LENGTHS, index_format, len(head))
    with BgzfOutput(open_output(str(path)), 2) as bam:
        bam.write(head)
        for begin in range(0, len(records), piece):
            part = records[begin : begin + piece]
            data = np.frombuffer(b"".join(part), np.uint8)
            index.accumulate(index.measure(data, np.cumsum([len(one) for one in part])))
            bam.write_borrowed(data, lambda: None)
        bam.commit()
    data = index.write(bam.block_sizes)
    if index_format is IndexFormat.BAI:
        path.with_suffix(".bam.bai").write_bytes(data)
        return
    with BgzfOutput(open_output(f"{path}.csi"), 1) as out:
        out.write(data)
        out.commit()


def parse(data: bytes) -> tuple[list[tuple[Bins, list[int] | None, dict[int, int]]], int]:
    """Parse an index: bins, windows (BAI) and first offsets (CSI) of each contig, and the unplaced records."""
    is_bai, at = data.startswith(b"BAI"), 4
    if not is_bai:
        assert struct.unpack_from("<ii", data, 4)[0] == 14
        at += 12
    (count,) = struct.unpack_from("<i", data, at)
    at += 4
    contigs = []
    for _ in range(count):
        bins: Bins = {}
        reached = {}
        (bin_count,) = struct.unpack_from("<i", data, at)
        at += 4
        for _ in range(bin_count):
            number, *first, chunks = struct.unpack_from("<Ii" if is_bai else "<IQi", data, at)
            at += 8 if is_bai else 16
            reached[number] = first[0] if first else 0
            bins[number] = [struct.unpack_from("<QQ", data, at + 16 * i) for i in range(chunks)]  # type: ignore[misc]
            at += 16 * chunks
        windows = None
        if is_bai:
            (window_count,) = struct.unpack_from("<i", data, at)
            windows = list(struct.unpack_from(f"<{window_count}Q", data, at + 4))
            at += 4 + 8 * window_count
        contigs.append((bins, windows, reached))
    (unplaced,) = struct.unpack_from("<Q", data, at)
    assert at + 8 == len(data)
    return contigs, unplaced


def check_against_htslib(folder: Path, records: list[bytes], index_format: IndexFormat, piece: int) -> None:
    path, theirs = folder / "out.bam", folder / "theirs"
    write(path, records, index_format, piece)
    pysam.index("-c" if index_format is IndexFormat.CSI else "-b", "-o", str(theirs), str(path))
    open_index = gzip.open if index_format is IndexFormat.CSI else open
    found = []
    for name in (f"{path}.{index_format}", theirs):
        with open_index(name, "rb") as file:
            found.append(parse(file.read()))
    assert found[0] == found[1]


@pytest.mark.parametrize("index_format", list(IndexFormat))
@pytest.mark.parametrize(("seed", "count", "piece"), [(1, 3000, 3000), (2, 20_000, 777), (3, 40, 1), (4, 0, 1)])
def test_equal_to_htslib(tmp_path: Path, index_format: IndexFormat, seed: int, count: int, piece: int) -> None:
    check_against_htslib(tmp_path, draw(seed, count, LENGTHS), index_format, piece)


@pytest.mark.parametrize("index_format", list(IndexFormat))
@pytest.mark.parametrize("piece", [1, 2, 100])
def test_windows_with_one_overlapping_record(tmp_path: Path, index_format: IndexFormat, piece: int) -> None:
    """Also the first record of a contig, after a longer record of another contig; and the longest of several."""
    long, longer = [(20_000, 3), (10, 0)], [(60_000, 3), (10, 0)]
    places = [(0, 10, long), (0, 390_000 - 60_000, longer), (1, 10, long), (2, 5, long), (2, 6, long), (2, 7, longer)]
    records = [record(contig, at, 0, operations, b"r") for contig, at, operations in places]
    check_against_htslib(tmp_path, records, index_format, piece)


@pytest.mark.parametrize("index_format", list(IndexFormat))
def test_any_region_is_found(tmp_path: Path, index_format: IndexFormat) -> None:
    records = draw(5, 4000, LENGTHS)
    path = tmp_path / "out.bam"
    write(path, records, index_format, 500)
    rng = random.Random(6)
    with pysam.AlignmentFile(str(path)) as file:
        assert file.check_index()
        everything = [
            (one.query_name, one.reference_id, one.reference_start, one.reference_end or one.reference_start + 1)
            for one in file.fetch(until_eof=True)
        ]
        for _ in range(200):
            contig = rng.choice([0, 2, 4, 1])
            begin = rng.choice([rng.randrange(LENGTHS[contig]), rng.randrange(15_000, 22_000)])
            end = begin + rng.choice([1, 100, 20_000, 1_000_000])
            found = [one.query_name for one in file.fetch(f"c{contig}", begin, end)]
            assert found == [name for name, on, low, high in everything if on == contig and low < end and high > begin]
