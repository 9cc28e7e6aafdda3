"""scripts/evaluate on simulated sets: changed libraries, counts of records, and targets."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("READMAP_SHARED") or ROOT.parent / "shared").absolute()
COMPLEMENT = str.maketrans("ACGT", "TGCA")


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


@pytest.fixture
def mapeval(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (SHARED / "tools/mapeval.py").exists():
        pytest.skip("the shared tools are not there")
    monkeypatch.syspath_prepend(str(SHARED / "tools"))


def random_bases(length: int, seed: int = 1) -> str:
    return "".join(np.random.default_rng(seed).choice(list("ACGT"), length))


def on_strand(sequence: str, strand: str) -> str:
    return sequence if strand == "+" else sequence.translate(COMPLEMENT)[::-1]


def pairs(contig: str, sequence: str, number: int, insert: int, length: int) -> Iterator[tuple[Any, ...]]:
    """Yield pairs without errors, named as by simulate.py; in every second pair mate 1 is the reverse mate."""
    from evaluation.libraries import Read

    rng = np.random.default_rng(3)
    for i in range(number):
        start = int(rng.integers(0, len(sequence) - insert + 1))
        mates = [(start, start + length, "+"), (start + insert - length, start + insert, "-")]
        mates = mates[::-1] if i % 2 else mates
        name = f"rm_{i}!{contig}!" + "!".join(f"{a}!{b}!{strand}" for a, b, strand in mates) + "!0!0"
        reads = [on_strand(sequence[a:b], strand) for a, b, strand in mates]
        yield tuple(Read(name, read, "I" * length) for read in reads)


def true_position(name: str, mate: int) -> tuple[str, int, int, str]:
    fields = name.split("!")
    start, end, strand = fields[3 * mate + 2 : 3 * mate + 5]
    return fields[1], int(start), int(end), strand


def test_reads_around_an_origin_have_places_of_the_circle(tmp_path: Path) -> None:
    from evaluation import libraries

    circle = random_bases(9_000)
    libraries.write_fasta(tmp_path / "circle.fa", {"c": circle})
    libraries.around_origin(tmp_path / "circle.fa", tmp_path / "donor.fa")
    [(name, donor)] = libraries.contigs(tmp_path / "donor.fa").items()
    assert donor == circle[-libraries.ORIGIN_MARGIN :] + circle[: libraries.ORIGIN_MARGIN]
    fragments, across, cut = [*pairs(name, donor, 2_000, 400, 100)], 0, 0
    kept = [*libraries.circular(fragments)]
    assert 0.9 < len(kept) / len(fragments) < 1
    for fragment in kept:
        places = [true_position(fragment[0].name, mate) for mate in (0, 1)]
        across += abs(places[0][1] - places[1][1]) > len(circle) / 2
        for read, (contig, start, end, strand) in zip(fragment, places, strict=True):
            assert contig == "c"
            assert 0 <= start < end <= len(circle)
            assert on_strand(circle[start:end], strand) in read.sequence
            assert end - start > 100 - libraries.SHORTEST_PART
            cut += end - start < 100
    assert across
    assert cut


@pytest.mark.parametrize(
    ("middle", "tandem"),
    [
        ("A" * 25, True),
        ("A" * 24, False),
        ("CAG" * 9, True),
        (random_bases(60, seed=5) + random_bases(22, seed=5), False),
        (random_bases(60, seed=5) * 2, True),
        (random_bases(61, seed=5) * 2, False),
        ("N" * 5, False),
    ],
)
def test_reads_in_tandem_repeats(tmp_path: Path, middle: str, tandem: bool) -> None:
    from evaluation.calibration import in_tandem

    reads = {"it": f"CG{middle}GC", "other": random_bases(300, seed=6), "short": "ACGTACGT", "empty": ""}
    (tmp_path / "r.fq").write_text("".join(f"@{name}\n{s}\n+\n{'I' * len(s)}\n" for name, s in reads.items()))
    assert in_tandem(tmp_path / "r.fq") == ({"it"} if tandem else set())


def test_a_bin_is_held_to_its_lowest_mapq() -> None:
    from evaluation.calibration import MAX_MAPQ, bins

    counts = np.zeros((2, MAX_MAPQ + 1), np.int64)
    counts[:, 29] = 999, 999
    counts[:, [30, 39]] = [[10_000, 90_000], [0, 131]]
    counts[:, 60] = 900_000, 19
    rows = {row["mapq"]: row for row in bins(counts)}
    assert list(rows) == ["0", "1-9", "10-19", "20-29", "30-39", "40-49", "50-60"]
    assert (rows["20-29"]["wrong"], rows["20-29"]["short"]) == (999, False)  # too few reads for a target
    assert (rows["30-39"]["most"], rows["30-39"]["short"]) == (130, True)  # 100 and 3 sqrt(100.9)
    assert (rows["50-60"]["most"], rows["50-60"]["short"]) == (18, True)  # 9 and 3 sqrt(10)
    counts[1, [39, 60]] -= 1
    assert not any(row["short"] for row in bins(counts))


def test_bars_of_luck() -> None:
    from evaluation.figures import alone, few, kept, many

    assert [few((n, 90, 0)) for n in (0, 3, 8, 24)] == [2, 7, 14, 34]
    assert many((90, 100, 0), 200) == 100 - 7  # sqrt(100 x 1/2) = 7.07
    assert many((100, 0), 100) == 100
    assert many((0, 0), 0) == 0
    row = alone("minibwa", (100, 60), 2, -3)
    assert (row["bwa"], row["minibwa"], row["mapper"], row["z"], row["verdict"]) == (None, 100, 60, -3.162, "MISS")
    assert alone("bwa", (100, 60), 1, -4)["verdict"] == "PASS"
    assert alone("bwa", (200, 120), 1, -4, together=2)["z"] == -3.162
    assert alone("bwa", (0, 0), 1, 0)["verdict"] == "PASS"
    counts = np.zeros((2, 61), np.int64)
    counts[:, [60, 40, 3]] = [[1_000, 500, 500], [0, 2, 100]]
    assert [kept(counts, rate) for rate in (1e-4, 2e-3, 1)] == [1_000, 1_500, 2_000]


def write_sam(path: Path, records: list[tuple[str, int, int, int, str]]) -> Path:
    """Write records of 50 bases given as (name, flag, 0-based start on contig one, MAPQ, tags)."""
    lines = [
        "\t".join((name, str(flag), "*" if flag & 4 else "one", str(start + 1), str(mapq), "*" if flag & 4 else "50M"))
        + f"\t*\t0\t0\t*\t*{tags and chr(9) + tags}\n"
        for name, flag, start, mapq, tags in records
    ]
    path.write_text("@SQ\tSN:one\tLN:5000\n" + "".join(lines))
    return path


def name_of(number: int) -> str:
    return f"rm_{number}!one!100!150!+!300!350!-!0!0"


def test_reads_are_counted_by_class_kind_and_mapq(tmp_path: Path, mapeval: None) -> None:
    from evaluation.calibration import CLASSES
    from evaluation.simulated import Repeats, count

    first, second = 1 | 2 | 64, 1 | 2 | 16 | 128
    random = "rm_9!*!0!0!+!.!.!.!0!."
    records = [
        (name_of(0), first, 100, 60, "AS:i:50"),
        (name_of(0), second, 300, 60, "AS:i:29"),  # too low a score for a single read
        (name_of(1), first, 900, 13, "AS:i:50\tXS:i:50"),  # equal to the alternative's score, and wrong
        (name_of(1), second, 300, 99, "AS:i:50\tSA:Z:one,1,+,9M,0,0;"),
        (name_of(2), first, 100, 5, "AS:i:50\tXS:i:49"),
        (name_of(2), second, 300, 6, "AS:i:50"),
        (random, 1 | 64, 7, 3, "AS:i:40"),
        (random, 1 | 128 | 4, 0, 0, ""),
    ]
    repeats = Repeats(tandem={(name_of(2), 1)}, family={(name_of(2), 1), (name_of(2), 2), (name_of(0), 2)})
    counts, total = count(write_sam(tmp_path / "a.sam", records), repeats, 1)
    assert total == [8, 6]
    found = {
        (CLASSES[i], int(mapq)): counts[i, :, mapq].tolist() for i, mapq in zip(*np.nonzero(counts[:, 0]), strict=True)
    }
    assert found == {
        ("unique", 60): [1, 0, 0],
        ("rescued", 60): [1, 0, 0],
        ("rescued", 13): [1, 1, 0],
        ("split", 60): [1, 0, 0],
        ("tandem repeat", 5): [1, 0, 0],
        ("family", 6): [1, 0, 0],
        ("unique", 3): [1, 1, 1],
    }
    doubled, _ = count(tmp_path / "a.sam", repeats, 2)  # with a match score of 2, a score of 50 is 25 matches
    assert doubled[CLASSES.index("rescued"), 0].sum() == 6


def test_repeats_are_found_in_reads_and_in_bwas_records(tmp_path: Path) -> None:
    from evaluation.simulated import Repeats, find_repeats

    files = [tmp_path / "1.fq", tmp_path / "2.fq"]
    for path, sequence in zip(files, (random_bases(60), "CA" * 30), strict=True):
        path.write_text(f"@{name_of(0)}\n{sequence}\n+\n{'I' * 60}\n")
    records = [(name_of(0), 65, 100, 60, "AS:i:50\tXS:i:40"), (name_of(0), 129, 100, 60, "AS:i:50\tXS:i:39")]
    records.append((name_of(1), 65 | 4, 0, 0, "AS:i:0\tXS:i:0"))
    bwa = write_sam(tmp_path / "bwa.sam", records)
    assert find_repeats(files, bwa) == Repeats({(name_of(0), 2)}, {(name_of(0), 1)})


def options(folder: Path) -> argparse.Namespace:
    return argparse.Namespace(work=folder, mapper="readmap", mapper_command=None, seeds=1, minibwa=None)


def test_mappers_are_compared_read_by_read(tmp_path: Path, mapeval: None) -> None:
    from evaluation.simulated import compare
    from evaluation.work_directory import WorkDirectory

    def sam(mapper: str, starts: list[int]) -> Path:
        return write_sam(tmp_path / mapper, [(name_of(i), 65, start, 60, "") for i, start in enumerate(starts)])

    sams = {"bwa": sam("bwa", [100, 900, 900, 100]), "minibwa": sam("minibwa", [900, 900, 900, 900])}
    sams["readmap"] = sam("readmap", [100, 100, 100, 900])
    assert compare(WorkDirectory(options(tmp_path)), "set", sams) == [[1, 2], [0, 3]]


def test_all_sets_are_judged_together() -> None:
    from evaluation.calibration import CLASSES, MAX_MAPQ
    from evaluation.simulated import together

    def result(wrong: int, only: list[int]) -> dict[str, Any]:
        counts = np.zeros((len(CLASSES), 2, MAX_MAPQ + 1), np.int64)
        counts[CLASSES.index("family"), :, 60] = 2_000, wrong
        return {"figures": [], "raw": ({"bwa": counts * 0, "readmap": counts}, [only])}

    results = [result(0, [10, 0]), result(1, [0, 10]), {"figures": []}]
    whole = together(results, 0)
    verdicts = {row["measure"]: row["verdict"] for row in whole["figures"]}
    assert verdicts["correct by bwa alone; by the mapper alone"] == "PASS"
    assert {row["class"]: row["reads"] for row in whole["calibration"]["readmap"] if row["mapq"] == "50-60"} == {
        "all": 4_000,
        "split": 0,
        "rescued": 0,
        "tandem repeat": 0,
        "family": 4_000,
        "unique": 0,
    }
    assert set(verdicts.values()) == {"PASS"}
    assert not any("raw" in one for one in results)
    missed = [row["measure"] for row in together([result(4, [1, 0])], 0)["figures"] if row["verdict"] == "MISS"]
    assert missed == [
        "correct by bwa alone; by the mapper alone",
        "MAPQ bins with too many errors: all",
        "MAPQ bins with too many errors: family",
    ]
    assert together([{"figures": []}], 0) == {}


def test_the_calibration_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from evaluation.calibration import CLASSES, MAX_MAPQ, calibration
    from evaluation.calibration_figure import draw

    counts = np.full((len(CLASSES), 2, MAX_MAPQ + 1), 1_000, np.int64)
    counts[0, 1], counts[1, 1], counts[2] = 0, 1, 0
    rows = {mapper: calibration(counts) for mapper in ("bwa", "minibwa", "other")}
    report = {"sets": {"A": {"bins": {}}, "all sets": {"calibration": rows}}}
    assert [path.stat().st_size > 10_000 for path in draw(report, tmp_path / "figures")] == [True]
