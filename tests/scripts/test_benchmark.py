"""scripts/benchmark on the demo data: what it checks, what it reports, and when it gives up. No time is asserted."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pysam
import pytest
from examples import Read, fasta, fastq, random_bases, random_quality
from oracles.alignment import reverse_complement

from readmap.backend import open_backend
from readmap.index.building import build_index

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/benchmark"
REFERENCE, READS = ROOT / "data/demo.fa.gz", ROOT / "data/demo.fq.gz"
PAIRED = ["pair", "record_plan", "alignments"]
STAGES = ["read", "copy", "parse", "seed", "windows", "extend", "place", "format", "between kernels", "write"]


def run(work: Path, *words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, *words, "--work", work, "--json", work / "figures.json"]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)


@pytest.mark.usefixtures("compiled")
def test_map_reports_a_checked_output_runs_and_stages(backends: str, tmp_path: Path) -> None:
    reference, reads, _ = write_pairs(tmp_path)
    words = ("--device", backends, "-t", "1", "--runs", "1", "--repeat", "2", "--label", "demo")
    done = run(tmp_path, "map", "--reference", reference, "--reads", reads, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "figures.json").read_text())
    assert report["schema"] == 2
    assert report["label"] == "demo"
    assert report["checked"] is True
    assert report["checked_reads"] == report["counts"]["reads"] == 600
    assert len(report["same_sam"]) == (3 if backends == "cpu" else 2)
    assert report["device"].startswith(backends)
    assert report["machine"]["cores"] >= 1
    peer = ["bwa mem"] if backends == "cpu" and shutil.which("bwa") else []
    assert list(report["runs"]) == ["cold", "warm", *peer]
    for name, rows in report["runs"].items():
        assert len(rows) == 1
        assert {"wall_seconds", "cpu_seconds", "peak_memory_bytes", "reads_a_second"} <= rows[0].keys(), name
    assert [row["run"] for row in report["medians"]] == ["cold", "warm", *peer, *["bwa mem / warm"] * len(peer)]
    stages = {row["stage"]: row for row in report["stages"]}
    assert {*STAGES} <= {*stages}
    assert "find_seeds" in stages["seed"]["parts"]
    for row in stages.values():
        assert row["ns_a_read"] == pytest.approx(sum(row["parts"].values()), abs=0.1)
    assert "find_seeds" in done.stdout
    assert not list(tmp_path.glob("tmp*")), "the cache of the cold run is left"


def write_pairs(folder: Path, count: int = 300) -> list[Path]:
    """A reference and two files of pairs of it; some of the fragments are shorter than a read."""
    generator, mates = random.Random(17), list[list[Read]]([[], []])
    genome = random_bases(generator, 30_000)
    for number in range(count):
        begin, size = generator.randrange(29_000), generator.randrange(90, 400)
        fragment = genome[begin : begin + size]
        for read, bases in zip(mates, (fragment, reverse_complement(fragment)), strict=True):
            read.append(Read(f"pair{number}", bases[:100], random_quality(generator, min(size, 100))))
    paths = [folder / name for name in ("made.fa", "r1.fq", "r2.fq")]
    for path, text in zip(paths, (fasta({"chr": genome}), *map(fastq, mates)), strict=True):
        path.write_bytes(text)
    return paths


@pytest.mark.usefixtures("compiled")
def test_pairs_report_both_kinds_of_output(backends: str, tmp_path: Path) -> None:
    reference, *reads = write_pairs(tmp_path)
    words = ("--device", backends, "-t", "1", "--runs", "1", "--repeat", "2")
    done = run(tmp_path, "pairs", "--reference", reference, "--reads", *reads, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "figures.json").read_text())
    assert report["checked_reads"] == report["counts"]["reads"] == 1200
    assert report["same_sam"][-1] == "-o out.bam"
    assert report["same_places"] == ["R1 R2", "R2 R1"]
    peer = ["bwa mem"] if backends == "cpu" and shutil.which("bwa") else []
    assert list(report["runs"]) == ["cold", "warm", *peer, "warm to BAM"]
    assert all(len(rows) == 1 for rows in report["runs"].values())
    for name in ("stages", "stages_bam"):
        stages = {row["stage"]: row for row in report[name]}
        assert {*STAGES} <= {*stages}
        assert [stage for stage in stages if stage in PAIRED] == PAIRED
        assert "pair_mates" in stages["pair"]["parts"]
        assert "measure_inserts" not in stages["pair"]["parts"], "insert sizes are known behind the first batch"
    assert len(report["bars"]) == (4 if peer else 2)
    assert {row["verdict"] for row in report["bars"]} == {None}, "the bars are for other inputs"
    assert not list(tmp_path.glob("stage.*"))


def test_bars_of_pairs(script: Any) -> None:
    from benchmarks.map import BAM, hold_to_bars

    def verdicts(device: str, *speeds: float, **given: Any) -> list[str | None]:
        keys = ("wall_seconds", "cpu_seconds", "steady_reads_a_second")
        names = ["warm", BAM, *["bwa mem"] * (device == "cpu")]
        medians = {name: dict.fromkeys(keys, speed) for name, speed in zip(names, speeds, strict=True)}
        options = argparse.Namespace(**{"device": device, "reference": None, "repeat": None} | given)
        return [row["verdict"] for row in hold_to_bars(options, medians)]

    assert verdicts("cuda", 2e6, 1e6) == ["PASS", "PASS"]
    assert verdicts("cuda", 1.9e6, 0.9e6) == ["MISS", "MISS"]
    assert verdicts("cuda", 1.9e6, 0.9e6, repeat=1) == [None, None]
    assert verdicts("cpu", 2.0, 1.0, 3.0) == ["PASS", None, None, None]
    assert verdicts("cpu", 2.0, 1.0, 2.9) == ["MISS", None, None, None]
    assert verdicts("cpu", 2.0, 1.0, 2.9, reference=REFERENCE) == [None] * 4


def test_places_are_compared_in_any_order(script: Any, tmp_path: Path) -> None:
    from benchmarks.map import sum_places

    def places(*records: tuple[str, int, str, int], swapped: bool = False) -> int:
        lines = ["@HD\tVN:1.6", *("\t".join([*map(str, record), "60", "50M", "*"]) for record in records)]
        (tmp_path / "out.sam").write_text("".join(f"{line}\n" for line in lines))
        return int(sum_places(tmp_path / "out.sam", swapped))

    straight = places(("a", 65, "one", 10), ("a", 145, "one", 300))
    assert places(("a", 81, "one", 300), ("a", 129, "one", 10), swapped=True) == straight
    assert places(("a", 145, "one", 300), ("a", 65, "one", 10)) == straight
    assert places(("a", 81, "one", 301), ("a", 129, "one", 10), swapped=True) != straight
    assert places(("a", 81, "one", 300), ("a", 129, "one", 10)) != straight


def test_no_pairs_are_timed_where_their_order_matters(
    script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reference, *reads = write_pairs(tmp_path, 20)
    sums, found = [1, 2], ({}, {"counts": {"reads": 40}})
    monkeypatch.setattr("benchmarks.map.readmap", lambda *_: found)
    monkeypatch.setattr("benchmarks.map.search", lambda *_: found)
    monkeypatch.setattr("benchmarks.map.digest", lambda _: b"the same")
    monkeypatch.setattr("benchmarks.map.pysam.view", lambda *_, **__: None)
    monkeypatch.setattr("benchmarks.map.sum_places", lambda *_, **__: sums.pop())
    words = ["pairs", "--reference", str(reference), "--reads", *map(str, reads), "--work", str(tmp_path / "work")]
    with pytest.raises(SystemExit, match="mates given in the other order have other places"):
        script.main(words)


@pytest.mark.usefixtures("compiled")
def test_index_is_checked_and_its_stages_are_timed(backends: str, tmp_path: Path) -> None:
    peer = tmp_path / "minibwa"
    peer.write_text("#!/bin/sh\necho 1.0\n")
    peer.chmod(0o755)
    words = ("--device", backends, "-t", "2", "--runs", "1", "--reference", REFERENCE)
    done = run(tmp_path, "index", *words, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "figures.json").read_text())
    assert len(report["checked"]["same_index"]) == (2 if backends == "cpu" else 3)
    assert report["versions"]["minibwa"] == "1.0"
    assert [row["run"] for row in report["medians"]] == ["readmap index", "minibwa index", "readmap info --check"]
    assert {"wall_seconds", "read", "sort_suffixes", "prefix_table", "write"} <= report["medians"][0].keys()
    assert {row["verdict"] for row in report["bars"]} == {None}, "the bars are for other genomes"
    assert {path.name for path in tmp_path.iterdir()} >= {"index.readmap", "few.fa"}


@pytest.mark.usefixtures("compiled")
def test_scale_tells_the_share_of_easy_reads(backends: str, tmp_path: Path) -> None:
    reference, first, second = write_pairs(tmp_path)
    words = ("--device", backends, "-t", "1", "--runs", "1", "--repeat", "2", "--pairs", "100")
    done = run(tmp_path, "scale", "--reference", reference, "--reads", first, second, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "figures.json").read_text())
    assert report["checked"] is True
    kinds = [(row["set"], row.get("layout"), row["output"]) for row in report["commands"]]
    assert kinds == [
        ("given", "pairs", "sam"),
        ("given", "pairs", "bam --sort"),
        ("given", "single", "sam"),
        ("few", "pairs", "sam"),
    ]
    assert all(0 < row["easy_share"] <= 1 for row in report["commands"])
    assert {row["set"] for row in report["kernels"]} == {"given"}
    assert all(row["verdict"] is None for row in report["bars"])
    assert not list(tmp_path.glob("out.*"))


def test_bam_is_made_of_lanes(backends: str, tmp_path: Path) -> None:
    reference, _, _ = write_pairs(tmp_path)
    words = ("--device", backends, "-t", "2", "--runs", "1", "--pairs", "400")
    done = run(tmp_path, "bam", "--reference", reference, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "figures.json").read_text())
    assert report["checked"] is True
    rows = {row["output"]: row for row in report["commands"]}
    assert list(rows) == [
        "sorted",
        "sorted, duplicates marked",
        "sorted, marked and reported",
        "unsorted",
        "sorted, libdeflate",
        "sorted in 5G",
        "sorted CRAM",
        "sorted, of one member",
    ]
    assert {row["reads"] for row in rows.values()} == {800}
    assert rows["sorted, libdeflate"]["codec"] == "libdeflate"
    assert rows["sorted CRAM"]["codec"] is None
    assert not list(tmp_path.glob("out.*"))


@pytest.mark.usefixtures("compiled")
def test_whole_commands_beside_a_peer(tmp_path: Path) -> None:
    """Each as often, in turn; a peer that marks duplicates is a pipe, of which what is last decides the output."""
    reference, first, second = write_pairs(tmp_path)
    peer = tmp_path / "bwa-mem2"
    peer.write_text("#!/bin/sh\nsamtools view -H --no-PG $0.sam; echo 1.0 >&2\n")
    peer.chmod(0o755)
    (tmp_path / "bwa-mem2.sam").write_text("@SQ\tSN:a\tLN:100\n")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    words = ["beside", "--reference", reference, "--reads", first, second, "--peer", "bwa-mem2", "-t", "2"]
    done = run(tmp_path, *words, "--runs", "1", **environment)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "figures.json").read_text())
    assert [row["program"] for row in report["commands"]] == ["readmap", "bwa-mem2 mem"]
    assert [row["verdict"] for row in report["bars"]] == [None, None]
    if not shutil.which("samtools"):
        pytest.skip("samtools is not installed")
    words = ["bam", "--reference", reference, "--peer", "bwa-mem2", "-t", "2", "--runs", "1", "--pairs", "400"]
    done = run(tmp_path, *words, **environment)
    assert done.returncode == 0, done.stderr
    rows = [row["output"] for row in json.loads((tmp_path / "figures.json").read_text())["commands"]]
    assert rows[:4] == [
        "sorted",
        "bwa-mem2 mem | samtools, sorted",
        "sorted, duplicates marked",
        "bwa-mem2 mem | samtools, sorted, duplicates marked",
    ]


def test_lanes(script: Any, tmp_path: Path) -> None:
    """Both forms hold the same records, of which mates are named alike and most have a perfect place."""
    from benchmarks.lanes import write_lanes

    reference, _, _ = write_pairs(tmp_path)
    lanes = write_lanes(Path(reference), tmp_path, 2, 300, 2)
    contents = [[gzip.decompress(file.read_bytes()) for file in lane.blocked] for lane in lanes]
    assert contents == [[gzip.decompress(file.read_bytes()) for file in lane.one_member] for lane in lanes]
    first, second = (text.decode().splitlines() for text in contents[0])
    assert first[::4] == second[::4] != contents[1][0].decode().splitlines()[::4]
    assert len({*first[::4]}) == len(first) // 4 == lanes[0].pairs == 300
    assert all(name.count(":") == 6 for name in first[::4])
    assert 200 < len({*first[1::4]}) <= 300  # duplicates have errors of their own, or none
    letters = "".join(line for line in Path(reference).read_text().splitlines() if line[0] != ">")
    assert sum(bases in letters for bases in first[1::4]) > 60


def test_bars_of_an_index(script: Any) -> None:
    from benchmarks.index import HUMAN, SMALL, hold_to_bars

    def verdicts(device: str, bases: int, threads: int = 16) -> list[str | None]:
        return [row["verdict"] for row in hold_to_bars(medians, (device, bases, threads))]

    own = {"wall_seconds": 5.0, "sort_suffixes": 8.5, "peak_memory_bytes": 21e9}
    medians = {"readmap index": own, "readmap info --check": {"wall_seconds": 29.0}}
    assert verdicts("cuda", HUMAN) == ["PASS", "MISS", "MISS", "PASS"]
    assert verdicts("cuda", SMALL) == ["MISS", None, None, None]
    assert verdicts("cpu", SMALL) == ["PASS", None, None, None]
    assert verdicts("cpu", HUMAN) == ["PASS", None, "PASS", None]
    assert verdicts("cpu", HUMAN, threads=2) == [None] * 4


def test_no_index_is_timed_that_differs(script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    digests = [b"one", b"another"]
    monkeypatch.setattr("benchmarks.index.digest", lambda _: digests.pop())
    monkeypatch.setattr("benchmarks.index.readmap", lambda *_: ({}, {"bases": 1}))
    with pytest.raises(SystemExit, match=r"--device cpu -t 1, --device cpu -t 2 are not the same, so nothing is timed"):
        script.main(["index", "--reference", str(REFERENCE), "-t", "2", "--work", str(tmp_path)])


def test_memory_holds_both_commands_to_their_bars(tmp_path: Path) -> None:
    reference, reads, _ = write_pairs(tmp_path)
    done = run(tmp_path, "memory", "--reference", reference, "--reads", reads, "-t", "1")
    assert done.returncode == 0, done.stderr
    index, search = json.loads((tmp_path / "figures.json").read_text())["memory"]
    assert (index["run"], index["bar_bytes"], index["verdict"]) == ("index", 14 * 30_000 + 300_000_000, "PASS")
    assert (search["run"], search["bar_bytes"], search["verdict"]) == ("search", 2 << 30, "PASS")


def test_memory_over_a_bar_fails(script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken = {"wall_seconds": 1.0, "peak_memory_bytes": 3 << 30}
    told = {"reference": {"bases": 100_000_000}}
    monkeypatch.setattr("benchmarks.memory.readmap", lambda *_: (taken, told))
    monkeypatch.setattr("benchmarks.memory.search", lambda *_: (taken, told))
    assert script.main(["memory", "--reference", "a.fa", "--reads", "a.fq", "--work", str(tmp_path)]) == 1


def test_nothing_is_timed_where_the_sam_differs(script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sams = [b"@PG\tID:readmap\tCL:a\nread\t0\n", b"@PG\tID:readmap\tCL:bb\nread\t0\n", b"@PG\tID:readmap\nread\t4\n"]
    told = {"counts": {"reads": 1}}

    def search(*_: object, **variables: str) -> tuple[dict[str, Any], dict[str, Any]]:
        assert not variables, "a timed run"
        (tmp_path / "out.sam").write_bytes(sams.pop(0))
        return {}, told

    monkeypatch.setattr("benchmarks.map.readmap", lambda *_: ({}, told))
    monkeypatch.setattr("benchmarks.map.search", search)
    with pytest.raises(SystemExit, match="is not the same, so nothing is timed"):
        script.main(["map", "--reference", str(REFERENCE), "--reads", str(READS), "--work", str(tmp_path)])
    assert not sams


@pytest.mark.parametrize("peer", ["bwa", "minibwa"])
def test_map_says_that_a_peer_is_missing(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, peer: str
) -> None:
    found = {"wall_seconds": 1.0, "cpu_seconds": 1.0}, {"counts": {"reads": 1}}
    monkeypatch.setattr("benchmarks.map.readmap", lambda *_: found)
    monkeypatch.setattr("benchmarks.map.search", lambda *_, **__: found)
    monkeypatch.setattr("benchmarks.map.check", lambda *_: {})
    monkeypatch.setattr("benchmarks.map.time_stages", lambda *_: {})
    monkeypatch.setattr(shutil, "which", lambda name: None)
    words = ["map", "--reference", "a.fa", "--reads", "a.fq", "--work", str(tmp_path), "--peer", peer]
    assert script.main(words) == 0
    assert f"{peer} is not installed" in capsys.readouterr().out


@pytest.mark.usefixtures("compiled")
def test_another_peer(tmp_path: Path) -> None:
    """Its index is made, its search timed in turn, and its version told."""
    reference, reads, _ = write_pairs(tmp_path)
    calls, peer = tmp_path / "calls", tmp_path / "minibwa"
    peer.write_text(f'#!/bin/sh\necho "$1" >> {calls}\necho 1.0\n')
    peer.chmod(0o755)
    words = ("--reference", reference, "--reads", reads, "--runs", "1", "--device", "cpu", "-t", "1")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = run(tmp_path, "map", *words, "--peer", "minibwa", PATH=path)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "figures.json").read_text())
    assert [row["run"] for row in report["medians"]] == ["cold", "warm", "minibwa map", "minibwa map / warm"]
    assert report["versions"]["minibwa"] == "1.0"
    assert calls.read_text().split()[:2] == ["index", "map"]


def test_exact_reports_checked_times_and_figures(backends: str, tmp_path: Path) -> None:
    sizes = ("--reference-bases", "200000", "--queries", "4096", "--peer-queries", "1024", "--random-bases", "100000")
    words = ("--device", backends, "-t", "2", "--runs", "1", *sizes, "--figures", tmp_path / "drawn")
    done = run(tmp_path, "exact", "--reference", REFERENCE, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "figures.json").read_text())
    assert report["checked"] is True
    assert len(report["same"]) == (4 if backends == "cpu" else 8)
    assert report["same_as_python"]["occurrences"] > 0
    inputs = report["inputs"]
    assert inputs["sizes"] == [1024, 4096]
    assert inputs["from_reference"]["found"] == inputs["from_reference"]["queries"] == 2048
    assert inputs["from_elsewhere"]["found"] < 2048
    plain = " without table"
    lines = {(row["structure"], row["threads"]) for row in report["cpu"]}
    assert lines == {("array", 1), ("array", 2), ("tree", 1), ("tree", 2), (f"array{plain}", 1), (f"tree{plain}", 1)}
    assert [row["queries"] for row in report["cpu"]] == [1024, 4096] * 6
    peers = [name for name in ("bowtie", "mummer") if shutil.which(name)]
    assert {"readmap array", "readmap tree", *peers} <= {row["command"] for row in report["commands"]}
    assert len({row["occurrences"] for row in report["commands"]}) == 1
    assert len(report["gpu"]) == (0 if backends == "cpu" else 8)
    assert (report["random"] is None) == (backends == "cpu")
    assert {row["verdict"] for row in report["bars"]} == {None}, "the bars are for other sizes"
    drawn = {path.name for path in (tmp_path / "drawn").iterdir()}
    assert drawn == {f"exact-figure-{number}.png" for number in ((3,) if backends == "cpu" else (3, 4, 5))}


@pytest.mark.parametrize(
    ("structure", "strand", "message"),
    [
        ("tree", "both", "tree on cpu does not find what Python finds"),
        ("tree", "forward", "tree on cpu and array on cpu do not find the same"),
        ("array", "both", "array on cpu does not find what Python finds"),
        ("array", "forward", "tree on cpu and array on cpu do not find the same"),
    ],
)
def test_nothing_is_timed_where_exact_searches_differ(
    script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, structure: str, strand: str, message: str
) -> None:
    from benchmarks.exact import inputs, searches

    find, planted = searches.find_occurrences, []

    def wrong(patterns: Any, placed: Any, on: str, by: str, backend: Any) -> Any:
        found = find(patterns, placed, on, by, backend)
        if (by, on) != (structure, strand) or planted:
            return found
        planted.append(replace(found, counts=found.counts + 1))
        return planted[0]

    monkeypatch.setattr(searches, "find_occurrences", wrong)
    first, rest = inputs.split_fasta(REFERENCE, 200_000, 1)
    inputs.write_fasta(tmp_path / "ref.fa", first)
    index, letters = (
        build_index(tmp_path / "ref.fa", structure="both", threads=1),
        inputs.draw_queries(first, rest, 100),
    )
    with pytest.raises(SystemExit, match=message):
        searches.check(index, inputs.text_of(first), letters, [open_backend("cpu", 1)])
    assert planted


def test_a_command_that_misses_an_occurrence_ends_the_benchmark(
    script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from benchmarks.exact import commands

    (tmp_path / "report.json").write_text('{"counts": {"occurrences": 6}}')
    monkeypatch.setattr(commands, "run", lambda *_: {"wall_seconds": 2.0, "cpu_seconds": 1.0})
    row = commands.time_command("readmap array", [], 5, 10, 6, tmp_path)
    assert row == {"command": "readmap array", "queries": 10, "occurrences": 6, "wall_seconds": 2.0, "cpu_seconds": 1.0}
    with pytest.raises(SystemExit, match="readmap array finds 6 occurrences of 10 queries, expected 7"):
        commands.time_command("readmap array", [], 5, 10, 7, tmp_path)


def test_queries_are_drawn_within_contigs_from_both_halves(script: Any, tmp_path: Path) -> None:
    from benchmarks.exact import inputs

    text, length = random_bases(random.Random(3), 1000), 100
    contigs = {"a": text[:300] + "N" + text[300:400], "b": text[400:700], "c": text[700:]}
    (tmp_path / "ref.fa").write_bytes(fasta(contigs))
    halves = inputs.split_fasta(tmp_path / "ref.fa", 600, 1)
    assert [half.names for half in halves] == [[b"a", b"b"], [b"b", b"c"]]
    assert [half.offsets.tolist() for half in halves] == [[0, 401, 600], [0, 101, 401]]
    drawn = inputs.draw_queries(*halves, 20_000, length)
    for first, half in enumerate(halves):
        joined = inputs.text_of(half)
        windows = {joined[i : i + length] for i in range(len(joined) - length + 1)}
        assert {query.tobytes() for query in drawn[first::2]} == {one for one in windows if set(one) <= set(b"ACGT")}
    inputs.write_queries(tmp_path / "queries.fa", drawn[:11])
    with pysam.FastxFile(str(tmp_path / "queries.fa")) as written:
        assert [(one.name, one.sequence) for one in written] == [
            (f"{i:08}", drawn[i].tobytes().decode()) for i in range(11)
        ]


def test_random_dna_is_sorted_and_searched(script: Any, backends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.exact import random_dna

    backend = open_backend(backends, 1)
    found = random_dna.search_random(50_000, 1001, 1, backend)
    assert (found["bases"], found["queries"], found["found_where_drawn"]) == (50_000, 1001, 501)
    build = random_dna.build_suffix_array
    monkeypatch.setattr(random_dna, "build_suffix_array", lambda *arguments: [build(*arguments)[0][::-1].copy()])
    with pytest.raises(SystemExit, match="out of order at rank 1"):
        random_dna.search_random(50_000, 1001, 1, backend)


def test_parts_of_a_search_are_within_its_total(script: Any, backends: str) -> None:
    from benchmarks.exact import inputs, times

    backend = open_backend(backends, 1)
    index = build_index(REFERENCE, structure="both", threads=1)
    letters = inputs.draw_queries(*inputs.split_fasta(REFERENCE, 200_000, 1), 200)
    rows = times.time_gpu(index, letters, [50, 200], 2, backend)
    assert [(row["structure"], row["queries"]) for row in rows] == [
        (name, size) for name in ("array", "tree", "array without table", "tree without table") for size in (50, 200)
    ]
    for row in rows:
        parts = [value for name, value in row.items() if name.endswith("_seconds") and name != "total_seconds"]
        assert len(parts) == 4
        assert 0 < sum(parts) <= row["total_seconds"] + 1e-6


@pytest.mark.usefixtures("shared")
def test_several_gpus_are_timed_beside_one(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the CPU stands for them: what is drawn, measured and compared is the same."""
    from benchmarks import common, gpus, reads

    def on_cpu(options: Any, *words: Any) -> Any:
        at = words.index("--gpus") if "--gpus" in words else len(words)
        return common.readmap(options, *("cpu" if word == "cuda" else word for word in words[:at] + words[at + 2 :]))

    for module in (gpus, reads):
        monkeypatch.setattr(module, "readmap", on_cpu)
    sizes = ("--bases", "1000000", "--chroms", "2", "--pairs", "1000", "--repeat", "12", "--long", "3000")
    more = ("--proteins", "20", "-t", "1", "--device", "cpu")
    command = ["gpus", *sizes, *more, "--work", str(tmp_path), "--json", str(tmp_path / "figures.json")]
    assert script.main(command) in (0, 1)
    report = json.loads((tmp_path / "figures.json").read_text())
    assert [(row["what"], row["gpus"]) for row in report["commands"]] == [
        (what, count) for what in ("index", "sam", "bam", "compare", "scan") for count in (1, 2)
    ]
    assert [row["verdict"] for row in report["bars"]].count(None) == 3  # of other sizes, and a scan
    assert {row["steady_reads_a_second"] > 0 for row in report["commands"] if row["what"] == "sam"} == {True}
    records = [line.split("\t") for line in (tmp_path / "few.sam").read_text().splitlines() if line[0] != "@"]
    assert len({record[0] for record in records}) == 1000
    assert sum(int(record[1]) & 2 > 0 for record in records) > 1800


def test_a_cluster_is_timed_beside_a_search(script: Any, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    sets = ["--reference", *map(str, write_pairs(tmp_path)), "--runs", "1", "-t", "1"]
    sets.insert(2, "--reads")
    assert script.main(["dask", *sets, "--work", str(tmp_path), "--json", str(tmp_path / "figures.json")]) in (0, 1)
    report = json.loads((tmp_path / "figures.json").read_text())
    assert [row["output"] for row in report["commands"]] == ["BAM", "SAM", "sorted"]
    for row in report["commands"]:
        for reads in (1_000_000, 100_000):
            assert row[f"times_{reads}"] == pytest.approx(row[f"seconds_{reads}"] / row["seconds"], rel=0.01)
    assert [row["bar"] for row in report["bars"]] == 3 * [1.1, 1.05]


def test_a_gpu_on_a_cluster_has_a_table_or_none(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU stands in for it."""
    pytest.importorskip("distributed")
    from benchmarks import common, dask

    commands = list[Sequence[Any]]()

    def on_cpu(options: Any, *words: Any) -> Any:
        commands.append(words)
        return common.readmap(options, *("cpu" if word == "cuda" else word for word in words))

    monkeypatch.setattr(dask, "readmap", on_cpu)
    reference, *reads = write_pairs(tmp_path)
    sets = ["--reference", str(reference), "--reads", *map(str, reads), "--runs", "1", "-t", "1", "--only", "BAM"]
    command = ["dask", *sets, "--device", "cuda", "--work", str(tmp_path), "--json", str(tmp_path / "figures.json")]
    assert script.main(command) in (0, 1)
    report = json.loads((tmp_path / "figures.json").read_text())
    assert report["split"]["wall_seconds"] > 0
    assert [(row["figure"], row["bar"]) for row in report["bars"]] == [
        ("BAM, 10,000,000 reads a task / without", 1.1),
        ("BAM, 10,000,000 reads a task by a table / without", 1.1),
    ]
    on_cluster = [words for words in commands if "--dask" in words and "--tasks" not in words]
    assert ["--split" in words for words in on_cluster] == [False, True]


@pytest.fixture
def report() -> dict[str, Any]:
    """What a run of `exact` on a GPU may tell."""
    sizes, structures = [1024, 1 << 20, 1 << 22], ("array", "tree", "array without table", "tree without table")
    parts = {"index_transfer_seconds": 2e-3, "query_transfer_seconds": 4e-3, "result_transfer_seconds": 1e-3}
    gpu = {"kernel_seconds": 5e-4, "total_seconds": 7.6e-3, **parts}
    rows = [{"structure": name, "queries": size} for name in structures for size in sizes]
    return {
        "inputs": {"reference_bases": 10**7, "query_bases": 200, "queries": sizes[-1], "sizes": sizes},
        "cpu": [row | {"threads": count, "seconds": row["queries"] / 2e6 / count} for count in (1, 2) for row in rows],
        "gpu": [row | gpu for row in rows],
        "both_strands": [{"structure": "array", "device": "cuda:0", "queries": sizes[-1], "seconds": 1e-3}],
        "packing": {
            "device": "cuda:0",
            "queries": 10**6,
            "copy_seconds": 0.1,
            "parse_seconds": 0.1,
            "pack_seconds": 0.1,
        },
        "commands": [
            {"command": name, "queries": sizes[1], "wall_seconds": seconds, "cpu_seconds": seconds, **more}
            for name, seconds, more in (
                ("readmap array", 2.0, {}),
                ("bowtie", 4.0, {}),
                ("mummer", 8.0, {"build_seconds": 5.0}),
            )
        ],
        "random": {"bases": 10**9, "queries": sizes[-1], "sort_seconds": 0.2, "kernel_seconds": 4e-3},
        "machine": {"cpu": None, "gpu": "a GPU"},
    }


def test_bars_of_exact(script: Any, report: dict[str, Any]) -> None:
    from benchmarks.exact.bars import summarize

    def verdicts() -> list[str]:
        return [row["verdict"] for row in summarize(report) if row["verdict"]]

    values = {row["figure"]: row["value"] for row in summarize(report)}
    assert verdicts() == ["PASS"] * 5
    assert values["bowtie / readmap, commands, 1,048,576 queries"] == 2
    assert values["mummer / readmap, commands, 1,048,576 queries, CPU time without building the tree"] == 1.5
    assert values["array: 1 CPU thread / GPU with all transfers"] == pytest.approx((1 << 22) / 2e6 / 7.6e-3, rel=1e-3)
    report["gpu"] = [row | {"kernel_seconds": 1.1e-3, "total_seconds": 1.0} for row in report["gpu"]]
    report["random"]["kernel_seconds"] = 6e-3
    assert verdicts() == ["PASS", "MISS", "PASS", "MISS", "MISS"]
    report["random"]["bases"] = report["inputs"]["reference_bases"] = 1000
    assert verdicts() == []


def test_figures_are_drawn_again(script: Any, report: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert script.main(["figures", str(tmp_path / "report.json"), "--figures", str(tmp_path)]) == 0
    drawn = sorted(tmp_path.glob("*.png"))
    assert [path.name for path in drawn] == [f"exact-figure-{number}.png" for number in (3, 4, 5)]
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_a_failing_command_is_told(tmp_path: Path) -> None:
    reads = tmp_path / "reads.fq"
    reads.write_text("no reads\n")
    done = run(tmp_path, "map", "--reference", REFERENCE, "--reads", reads)
    assert done.returncode == 1
    assert "exit code 1" in done.stderr
    assert "expected reads" in done.stderr


@pytest.mark.parametrize("words", [["map"], ["map", "--device", "cuda"], ["pairs"], ["memory"], ["index"], ["exact"]])
def test_without_the_simulator_the_usual_sets_are_skipped(tmp_path: Path, words: list[str]) -> None:
    done = run(tmp_path, *words, READMAP_SHARED=str(tmp_path / "none"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("skipped: ")


@pytest.mark.parametrize(
    "words",
    [
        ["map", "--reads", "a.fq"],
        ["map", "--reference", "a.fa", "--reads", "a.fq", "b.fq"],
        ["pairs", "--reference", "a.fa", "--reads", "a.fq"],
        ["memory", "--device", "cuda"],
        ["exact", "--reads", "a.fq"],
        ["compare", "--reference", "a.fa"],
        ["compare-pairs", "--figures", "."],
        ["figures"],
        ["sort"],
    ],
)
def test_usage(script: Any, words: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        script.main(words)
    assert left.value.code == 2
