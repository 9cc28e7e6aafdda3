"""Duplicates compared with an oracle, and with Picard if it is installed."""

import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pysam
import pytest
from alignment_files import bytes_of_records
from oracles import duplicates as oracle

from readmap.backend import Backend, open_backend
from readmap.duplicates.fragments import FragmentTable
from readmap.duplicates.marker import DuplicateRules
from readmap.duplicates.metrics import LibraryMetrics, SetSizes, estimated_size, write_metrics
from readmap.duplicates.sets import find_duplicates
from readmap.formats.sam import read_groups

LENGTHS = [5_000, 5_000, 300]
LIBRARIES = {"a": {"LB": "x"}, "b": {"LB": "x"}, "c": {}, "d": {"LB": "y"}}
HEADER = pysam.AlignmentHeader.from_dict({
    "HD": {"VN": "1.6", "SO": "unsorted", "GO": "query"},
    "SQ": [{"SN": f"c{number}", "LN": length} for number, length in enumerate(LENGTHS)],
    "RG": [{"ID": name, "SM": "s", **library} for name, library in LIBRARIES.items()],
})  # fmt: skip
PICARD = shutil.which("PicardCommandLine") or shutil.which("picard")
Names = dict[str, int]


def record(
    name: str, flag: int, contig: int, place: int, cigar: str, quality: Sequence[int], **tags: str
) -> pysam.AlignedSegment:
    one = pysam.AlignedSegment(HEADER)
    one.query_name, one.flag, one.mapping_quality = name, flag, 60
    one.query_sequence = "A" * len(quality)
    text = "".join(chr(33 + value) for value in quality)
    one.query_qualities = pysam.qualitystring_to_array(text) if quality else None
    if contig >= 0:
        one.reference_id, one.reference_start = contig, place
    one.cigarstring = None if flag & 4 else cigar
    for tag, text in tags.items():
        one.set_tag(tag, text)
    return one


def draw_name(draw: random.Random, number: int) -> str:
    tile, x, y = draw.choice([1101, 1102, 70000]), draw.randrange(1000, 1400), draw.randrange(1000, 1400)
    located = [f"M{number}:1:FC:1:{tile}:{x}:{y}", f"M{number}:1:{tile}:{x}:{y}#AC", f"M{number}:1:{tile}:x:{y}"]
    return draw.choice([*located, f"read{number}", f"M{number}:1:FC:1:{tile}:-{x}:{y}"])


def draw_fragment(draw: random.Random, number: int) -> list[pysam.AlignedSegment]:
    """Return the records of a fragment with one of few positions, so that many fragments are duplicates; with clipped
    ends, secondary and supplementary records, missing mates and failed reads.
    """
    name, group = draw_name(draw, number), draw.choice(["a", "a", "a", "b", "c", "d", None])
    tags = {"RG": group} if group else {}
    if draw.random() < 0.8:
        tags["RX"] = draw.choice(["AC", "GT"])
    failed = 512 if draw.random() < 0.1 else 0
    kind = draw.choice(["pair"] * 6 + ["single"] * 2 + ["half", "half", "none", "lost"])
    ends = []
    for _ in range(2):
        clip = draw.choice([0, 0, 0, 3, 5])
        reverse, place = draw.random() < 0.5, draw.choice([100, 100, 104, 200])
        hard = draw.choice(["", "", "2H"])
        if reverse:  # the same unclipped end for any clipping
            cigar, start = f"{20 - clip}M{clip}S{hard}" if clip else f"20M{hard}", place - 20 + clip - len(hard)
        else:
            cigar, start = f"{hard}{clip}S{20 - clip}M" if clip else f"{hard}20M", place + clip + len(hard)
        ends.append((16 if reverse else 0, draw.choice([0, 0, 0, 1]), start, cigar))
    qualities = [[draw.choice([2, 14, 15, 30]) for _ in range(20)] for _ in range(2)]
    (flag, contig, place, cigar), (other_flag, other_contig, other_place, other_cigar) = ends
    own, mate = 1 | 64 | failed, 1 | 128 | failed
    match kind:
        case "single":
            found = [record(name, flag | failed, contig, place, cigar, qualities[0], **tags)]
        case "none":
            found = [
                record(name, own | 12, -1, -1, "", qualities[0], **tags),
                record(name, mate | 12, -1, -1, "", qualities[1], **tags),
            ]
        case "half":
            found = [
                record(name, own | flag | 8, contig, place, cigar, qualities[0], **tags),
                record(name, mate | 4, contig, place, "", qualities[1], **tags),
            ]
            found = found if draw.random() < 0.5 else found[::-1]
        case "lost":
            found = [record(name, own | flag, contig, place, cigar, qualities[0], **tags)]
        case _:
            found = [
                record(name, own | flag, contig, place, cigar, qualities[0], **tags),
                record(name, mate | other_flag, other_contig, other_place, other_cigar, qualities[1], **tags),
            ]
            if draw.random() < 0.2:
                found.insert(1, record(name, own | 2048, 1, 50, "10H10M", qualities[0][:10], **tags))
    if kind in ("pair", "lost"):
        for one, other in zip(found, reversed(found), strict=True):
            one.next_reference_id = other.reference_id if kind == "pair" else 1
            one.next_reference_start = other.reference_start if kind == "pair" else 7
    return found


def draw_records(seed: int, count: int) -> list[pysam.AlignedSegment]:
    draw = random.Random(seed)
    return [one for number in range(count) for one in draw_fragment(draw, number)]


def raw(records: Sequence[pysam.AlignedSegment], folder: Path) -> list[bytes]:
    """Return the bytes of each record of a BAM file."""
    write(records, folder / "raw.bam", "wbu")
    return bytes_of_records(folder / "raw.bam")


def write(records: Sequence[pysam.AlignedSegment], path: Path, mode: str = "wb") -> None:
    with pysam.AlignmentFile(str(path), mode, header=HEADER) as out:
        for one in records:
            out.write(one)


class Run:
    """Marks records in batches."""

    def __init__(
        self, records: Sequence[pysam.AlignedSegment], folder: Path, rules: DuplicateRules, backend: Backend, batch: int
    ) -> None:
        table = FragmentTable(read_groups(str(HEADER).splitlines()), LENGTHS, backend, rules.barcode_tag)
        data = raw(records, folder)
        names = list(dict.fromkeys(str(one.query_name) for one in records))
        for begin in range(0, len(names), batch):
            part = set(names[begin : begin + batch])
            numbers = [number for number, one in enumerate(records) if one.query_name in part]
            lengths = np.array([len(data[number]) for number in numbers], np.int64)
            own = [records[number].query_name for number in numbers]
            firsts = [at for at, name in enumerate(own) if not at or name != own[at - 1]]
            given = [np.frombuffer(b"".join(data[number] for number in numbers), np.uint8), lengths, np.cumsum(lengths)]
            given.append(np.array([*firsts, len(numbers)], np.int64))
            table.add(table.describe(*map(backend.to_device, given)))
        found = find_duplicates(*table.take(backend), table.counters.size, rules.distance, backend)
        table.counters += found.counters.reshape(table.counters.shape)
        marks = backend.to_host(found.marks)
        self.duplicates = {name for name, mark in zip(names, marks, strict=True) if mark & 1}
        self.optical = {name for name, mark in zip(names, marks, strict=True) if mark & 2}
        self.libraries = [LibraryMetrics.of(name, counters) for name, counters in table.reported_libraries()]
        self.set_sizes = SetSizes.of(found.sizes, found.optical, found.alone)


@pytest.mark.parametrize(
    "rules", [DuplicateRules(), DuplicateRules(0), DuplicateRules(30), DuplicateRules(2500, "RX")], ids=str
)
@pytest.mark.parametrize("count", [0, 1, 2, 40, 1500])
def test_same_as_oracle(backends: str, tmp_path: Path, count: int, rules: DuplicateRules) -> None:
    records = draw_records(count, count)
    expected = oracle.find(records, rules.distance, rules.barcode_tag)
    for batch in (max(count, 1), 7):
        found = Run(records, tmp_path, rules, open_backend(backends), batch)
        assert found.duplicates == expected.duplicates
        assert found.optical == expected.optical
        counted = {one.name: one for one in found.libraries}
        for name, counts in expected.counts.items():
            names = ("others", "unmapped", "unpaired duplicates", "pair duplicates", "optical")
            numbers = (counts["unpaired"], counts["paired"] // 2, *(counts[each] for each in names))
            assert counted[name] == LibraryMetrics(name, *numbers)
        assert found.set_sizes.all_sets == Counter(size for size, _ in expected.set_sizes)
        assert found.set_sizes.optical_sets == Counter(1 + optical for _, optical in expected.set_sizes if optical)
    if count == 1500:
        assert len(expected.duplicates) > 300
        assert bool(rules.distance) == bool(expected.optical)


@pytest.mark.skipif(not PICARD, reason="Picard is not installed (apt install picard-tools)")
@pytest.mark.parametrize("barcode_tag", [None, "RX"])
def test_same_as_picard(backends: str, tmp_path: Path, barcode_tag: str | None) -> None:
    records = [one for one in draw_records(5, 3000) if one.has_tag("RG")]  # Picard fails without a read group
    write(records, tmp_path / "in.bam")
    command = [str(PICARD), "MarkDuplicates", "I=in.bam", "O=out.bam", "M=metrics.txt", "ASSUME_SORT_ORDER=queryname"]
    command += ["TAGGING_POLICY=All", "VALIDATION_STRINGENCY=SILENT"]
    command += [f"BARCODE_TAG={barcode_tag}"] if barcode_tag else []
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    with pysam.AlignmentFile(str(tmp_path / "out.bam"), check_sq=False) as out:
        marked = [one for one in out if one.is_duplicate]
    found = Run(records, tmp_path, DuplicateRules(100, barcode_tag), open_backend(backends), 1000)
    assert {one.query_name for one in marked} == found.duplicates
    assert {one.query_name for one in marked if one.get_tag("DT") == "SQ"} == found.optical
    text = write_metrics(found.libraries, found.set_sizes, "readmap")
    assert metrics_rows(text) == metrics_rows((tmp_path / "metrics.txt").read_text())


def metrics_rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_large_sets(backends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of more than the maximum number of pairs are not searched for optical duplicates."""
    records = []
    for number in range(40):
        name = f"M:1:FC:1:1101:{1000 + number}:1000"
        records += [
            record(name, 1 | 64, 0, 100, "20M", [30] * 20, RG="a"),
            record(name, 1 | 128 | 16, 0, 300, "20M", [30] * 20, RG="a"),
        ]
    backend = open_backend(backends)
    assert len(Run(records, tmp_path, DuplicateRules(), backend, 40).optical) == 39
    # One cluster, because each is near the next.
    assert len(Run(records, tmp_path, DuplicateRules(1), backend, 40).optical) == 39
    monkeypatch.setattr("readmap.duplicates.sets.MAX_OPTICAL_SET", 39)
    found = Run(records, tmp_path, DuplicateRules(), backend, 40)
    assert not found.optical
    assert len(found.duplicates) == 39


def test_invalid_positions(backends: str, tmp_path: Path) -> None:
    """Records mapped to no contig, or covering more bases than the contig has, do no harm."""
    far = record("far", 16, 2, 100, "268435455N" * 9000 + "20M", [30] * 20, RG="a")
    lost = record("lost", 0, -1, -1, "20M", [30] * 20, RG="a")
    usual = record("usual", 0, 0, 5, "20M", [30] * 20, RG="a")
    found = Run([far, lost, usual], tmp_path, DuplicateRules(), open_backend(backends), 3)
    assert not found.duplicates
    library = next(one for one in found.libraries if one.name == "x")
    assert (library.unpaired, library.unmapped) == (2, 1)


def test_estimated_size() -> None:
    """n draws from n molecules yield a share of 1 - 1/e of them."""
    assert estimated_size(100, 100) is None
    assert estimated_size(0, 0) is None
    assert 0.9e6 < (estimated_size(1_000_000, 632_121) or 0) < 1.1e6


def test_metrics_of_one_library() -> None:
    library = LibraryMetrics("x", 10, 1000, 3, 4, 2, 200, 50)
    text = write_metrics([library], SetSizes({1: 700, 2: 5}, {2: 1}, {1: 700}), "readmap search")
    assert "## METRICS CLASS\tpicard.sam.DuplicationMetrics" in text
    lines = metrics_rows(text)
    assert lines[1].split("\t")[:8] == ["x", "10", "1000", "3", "4", "2", "200", "50"]
    assert lines[2].split("\t") == ["BIN", "CoverageMult", "all_sets", "optical_sets", "non_optical_sets"]
    assert lines[3].startswith("1.0\t")
    assert len(lines) == 103
