"""scripts/evaluate: its simulator of split reads, and the verdicts on constructed records."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pysam
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/evaluate"
CONTIG = 5_000


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))


@pytest.fixture
def genome(tmp_path: Path) -> dict[str, str]:
    rng = np.random.default_rng(4)
    sequences = {name: "".join(rng.choice(list("ACGT"), CONTIG)) for name in ("one", "two")}
    sequences["two"] = sequences["two"][:2_000] + "N" * 500 + sequences["two"][2_500:]
    (tmp_path / "genome.fa").write_text("".join(f">{name}\n{bases}\n" for name, bases in sequences.items()))
    return sequences


def write_sam(path: Path, records: list[tuple[str, int, str, int, str, int, dict[str, str]]]) -> Path:
    """Write records given as (name, flag, contig, 0-based start, CIGAR, MAPQ, tags); contig "*" is unmapped."""
    header = {"SQ": [{"SN": name, "LN": CONTIG} for name in ("one", "two")]}
    with pysam.AlignmentFile(str(path), "w", header=header) as out:  # type: ignore[arg-type]
        for name, flag, contig, start, cigar, mapq, tags in records:
            fields = {"name": name, "flag": str(flag), "ref_name": contig, "ref_pos": str(start + 1), "cigar": cigar}
            fields |= {"map_quality": str(mapq), "next_ref_name": "*", "next_ref_pos": "0", "length": "0"}
            fields |= {"seq": "*", "qual": "*", "tags": [f"{tag}:Z:{value}" for tag, value in tags.items()]}  # type: ignore[dict-item]
            out.write(pysam.AlignedSegment.from_dict(fields, out.header))
    return path


def simulate(tmp_path: Path, pairs: int = 200) -> tuple[Path, Path]:
    from evaluation import splits

    files = tmp_path / "1.fq", tmp_path / "2.fq"
    splits.simulate(tmp_path / "genome.fa", files, seed=7, pairs=pairs)
    return files


def test_split_reads_are_what_their_names_tell(tmp_path: Path, genome: dict[str, str]) -> None:
    from evaluation import splits

    differing, split = 0, 0
    for mate, path in enumerate(simulate(tmp_path), 1):
        with pysam.FastxFile(str(path)) as file:
            reads = [(str(read.name), str(read.sequence)) for read in file]
        assert len(reads) == 200
        for name, sequence in reads:
            pieces = splits.truth((name, mate))
            differing += sum(a != b for a, b in zip(sequence, splits.bases(pieces, genome), strict=True))
            assert min(end - start for _, start, end, _ in pieces) >= splits.SHORTEST_PIECE
            split += len(pieces) - 1
    assert split == 200 / splits.SPLIT_EVERY
    assert 0.5 < differing / (400 * splits.LENGTH * splits.ERROR) < 1.5


def test_split_reads_are_the_same_again(tmp_path: Path, genome: dict[str, str]) -> None:
    first = [path.read_bytes() for path in simulate(tmp_path, 20)]
    assert [path.read_bytes() for path in simulate(tmp_path, 20)] == first


def split_records(tmp_path: Path, whole: bool) -> list[tuple[str, int, str, int, str, int, dict[str, str]]]:
    """Return the records of a mapper that finds all parts of each read, or only the first part."""
    from evaluation import splits

    records = []
    for mate, path in enumerate(simulate(tmp_path), 1):
        with pysam.FastxFile(str(path)) as file:
            names = [str(read.name) for read in file]
        for name in names:
            pieces = splits.truth((name, mate))[: None if whole else 1]
            spots = [f"{contig},{start + 1},{strand},1M,60,0;" for contig, start, _, strand in pieces]
            for i, (contig, start, end, strand) in enumerate(pieces):
                tags = {"SA": "".join(spots[:i] + spots[i + 1 :])} if len(spots) > 1 else {}
                flag = 1 | 64 * mate | 16 * (strand == "-") | 0x800 * (i > 0)
                records.append((name, flag, contig, start, f"{end - start}M", 60, tags))
    return records


def test_split_reads_are_judged_by_both_pieces(tmp_path: Path, genome: dict[str, str]) -> None:
    from evaluation import splits

    sam = tmp_path / "out.sam"
    counts = splits.judge(write_sam(sam, split_records(tmp_path, whole=True)))
    assert sum(counts[f"found {edge}"] for edge in splits.PIECE_EDGES) == 40
    assert counts["stray"] == counts["needless"] == counts["astray"] == counts["untold"] == 0
    counts = splits.judge(write_sam(sam, split_records(tmp_path, whole=False)))
    assert sum(counts[f"found {edge}"] for edge in splits.PIECE_EDGES) == 0


def test_supplementary_records_elsewhere_are_counted(tmp_path: Path) -> None:
    from evaluation import splits

    split = "split_0!one:100:160:+,two:300:390:-!two:600:750:+"
    records: list[Any] = [
        (split, 65, "one", 100, "60M90S", 60, {"SA": "one,4001,+,60S90M,9,0;"}),
        (split, 65 | 0x800, "one", 4_000, "60H90M", 9, {"SA": "one,101,+,60M90S,60,0;"}),
        (split, 129, "two", 600, "150M", 60, {}),
        (split, 129 | 0x800, "one", 900, "40M110H", 0, {}),
    ]
    counts = splits.judge(write_sam(tmp_path / "out.sam", records))
    assert counts == {"found 60": 0, "stray": 1, "astray": 0, "needless": 1, "untold": 1}


def test_swapped_pairs_are_compared_by_file(tmp_path: Path) -> None:
    from evaluation import pairs

    straight: list[Any] = [
        ("a", 65, "one", 10, "50M", 60, {}),
        ("a", 129 | 16, "one", 300, "50M", 60, {}),
        ("b", 65, "one", 20, "50M", 60, {}),
        ("b", 129 | 16, "one", 310, "50M", 60, {}),
    ]
    turned = [(name, flag ^ 192, *rest) for name, flag, *rest in straight]
    turned[2] = ("b", 129, "one", 20, "48M2S", 60, {})
    turned[3] = ("b", 65 | 16, "two", 310, "50M", 60, {})
    one, other = write_sam(tmp_path / "one.sam", straight), write_sam(tmp_path / "other.sam", turned)
    assert pairs.compare_swapped(one, one) == (4, 0, 4)
    assert pairs.compare_swapped(one, other) == (1, 1, 4)


def test_a_read_with_two_primary_records_is_refused(tmp_path: Path) -> None:
    from evaluation import records

    two: list[Any] = [("a", 65, "one", 10, "50M", 60, {}), ("a", 65, "one", 90, "50M", 60, {})]
    with pytest.raises(SystemExit, match="a: mate 1 has two primary records"):
        list(records.primaries(write_sam(tmp_path / "two.sam", two)))


def test_variants_are_summed_over_seeds_and_held_to_the_better_peer() -> None:
    from evaluation import variants

    def row(recalled: int, false: int) -> dict[str, Any]:
        one = {"truth": 100, "tp": recalled, "fp": false, "gt_wrong": 0}
        return {"classes": dict.fromkeys(variants.CLASSES, one)}

    seeds = [[row(50, 1), row(40, 0), row(45, 1)], [row(20, 1), row(60, 0), row(40, 2)]]
    rows = {one["measure"]: one for one in variants.compare(seeds)}
    long = rows["indels of 30 to 60"]
    assert [long[name] for name in ("bwa", "minibwa", "mapper", "of")] == [70, 100, 85, 200]
    assert (long["bar"], long["verdict"]) == (">= 86", "MISS")  # 100 and 2 sqrt(50)
    false = rows["false positives"]
    assert (false["bwa"], false["mapper"], false["bar"]) == (8, 12, "<= 10")


def test_short_variants_near_long_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluation import variants

    long, other = ("one", 1_000, "A" * 31, "A"), ("two", 500, "C", "C" * 12)
    short = [("one", at, "A", "G") for at in (939, 940, 1_091, 1_092)] + [
        ("two", 1_000, "A", "G"),
        ("two", 450, "AC", "A"),
    ]
    vcf = {
        "truth.vcf.gz": dict.fromkeys((long, other, *short), (0.0, "het")),
        "bwa.0.vcf.gz": {short[1]: (19.9, "het"), short[0]: (50.0, "het")},
        "bwa.1.vcf.gz": {short[5]: (20.0, "hom"), ("two", 451, "A", "C"): (60.0, "het")},
    }
    tool = SimpleNamespace(load_vcf=lambda path: vcf[Path(path).name])
    monkeypatch.setitem(sys.modules, "varcall_eval", tool)
    for name in vcf:
        (tmp_path / name).touch()
    assert variants.near_long(tmp_path, ["bwa", "none"]) == [{"truth": 3, "tp": 1}, {"truth": 3, "tp": 0}]


@pytest.mark.parametrize(
    ("words", "message"),
    [(["F"], "no such set: F"), (["--mapper", "minimap2"], "--mapper-command and a --mapper name")],
)
def test_usage_is_checked(words: list[str], message: str) -> None:
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert message in done.stderr


def test_without_the_shared_folder_it_skips(tmp_path: Path) -> None:
    environment = os.environ | {"READMAP_SHARED": str(tmp_path)}
    done = subprocess.run([sys.executable, SCRIPT, "pairs"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0
    assert done.stdout.startswith("skipped: ")


@pytest.mark.skipif(shutil.which("bwa") is None, reason="bwa is not installed")
def test_the_quick_sets_reach_every_bar(tmp_path: Path, shared: Path) -> None:
    if not (shared / "tools/mapeval.py").exists():
        pytest.skip(f"{shared} has no tools")
    words = ["quick", "-t", "1", "--work", tmp_path, "--json", tmp_path / "found.json"]
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert [*found["sets"]] == ["few_reads", "few_families", "few_chimeras", "all sets"]
    verdicts = [row["verdict"] for one in found["sets"].values() for row in one["figures"]]
    assert verdicts.count("PASS") > 20
