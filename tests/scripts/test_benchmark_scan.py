"""scripts/benchmark scan on small databases. No time is asserted."""

from __future__ import annotations

import json
from collections import Counter
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles.comparison import Comparison

from readmap.database.database import Database
from readmap.database.matrices import standard
from readmap.database.parameters import ScanScoring
from readmap.formats.alphabets import Alphabet
from readmap.pairwise.parameters import Mode
from readmap.reads.sequences import Sequences

HAS_PARASAIL = find_spec("parasail") is not None
needs_parasail = pytest.mark.skipif(not HAS_PARASAIL, reason="parasail is not installed")
SMALL = ["scan", "--proteins", "40", "--lengths", "30", "10", "--bases", "2000", "--runs", "1"]
BLOSUM62 = ScanScoring.of(standard("BLOSUM62"))


@pytest.fixture
def quick(script: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, without the large checks."""
    for name, value in {
        "inputs.PROTEIN": Path("none"),
        "inputs.LONGEST": 3000,
        "checks.PROTEINS": 40,
        "checks.LENGTHS": (24, 63, 500),
        "checks.BASES": 3000,
        "checks.LONGEST": 2000,
        "checks.DNA_LENGTHS": (30, 200),
        "benchmark.DNA_QUERY": 50,
    }.items():
        monkeypatch.setattr(f"benchmarks.scan.{name}", value)
    return script


def database_of(*texts: str) -> Database:
    return Database.of(sequences_of(*texts), Alphabet.PROTEINS)


def sequences_of(*texts: str) -> Sequences:
    letters = np.frombuffer("".join(texts).encode(), np.uint8)
    return Sequences([b"%d" % i for i in range(len(texts))], letters, np.cumsum([0, *map(len, texts)]))


def test_scan_reports_checked_scores_and_is_drawn(quick: Any, backends: str, tmp_path: Path) -> None:
    words = ["--device", backends, "-t", "2", "--label", "test", "--json", str(tmp_path / "figures.json")]
    assert quick.main([*SMALL, *words, "--work", str(tmp_path), "--figures", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "figures.json").read_text())
    assert report["checked"] is True
    assert report["same_as_parasail"] == HAS_PARASAIL
    assert report["device"].startswith(backends)
    assert [row["what"] for row in report["checks"]] == [*["synthetic proteins"] * 2, "contigs, both strands"]
    ways = (["parasail"] if HAS_PARASAIL else []) + (["cuda:0"] if backends == "cuda" else [])
    for row in report["checks"]:
        assert row["same"].split(", ") == [*ways, "1 thread", "2 threads"]
        assert row["pairs"] == row["queries"] * row["sequences"]
    letters, threads = report["inputs"]["letters"], [1, 2] if backends == "cpu" else [2]
    rows = [(row["costs"], row["query_letters"], row["threads"]) for row in report["speeds"]]
    costs = ("BLOSUM62 11/1", "BLOSUM50 8/2")
    assert rows == [(one, length, number) for number in threads for one in costs for length in (30, 10)]
    for row in report["speeds"]:
        assert ("parasail_gcups" in row) == (HAS_PARASAIL and backends == "cpu" and row["threads"] == 1)
        assert row["gcups"] == pytest.approx(row["query_letters"] * letters / row["seconds"] / 1e9, rel=0.01)
    whats = ["scores", "scores, database uploaded", "hits at E <= 10", "hits at E <= 1,000", "DNA, both strands"]
    assert [row["what"] for row in report["scans"]] == whats * len(threads)
    found = {row["what"]: row.get("hits") for row in report["scans"]}
    assert found["hits at E <= 10"] <= found["hits at E <= 1,000"] == 40
    assert {row["verdict"] for row in report["bars"]} == {None}, "the bars are for other sizes"
    drawn = tmp_path / "scan-gcups.png"
    assert drawn.read_bytes().startswith(b"\x89PNG")
    drawn.unlink()
    again = [str(tmp_path / "figures.json")] * 2
    assert quick.main(["figures", *again, "--figures", str(tmp_path)]) == 0
    assert drawn.read_bytes().startswith(b"\x89PNG")


def test_proteins_are_as_long_as_swissprots(script: Any) -> None:
    from benchmarks.scan import inputs

    lengths = inputs.protein_lengths(500_000, True, np.random.default_rng(inputs.SEED))
    assert len(lengths) == 500_000
    assert lengths.mean() == pytest.approx(360, abs=3)
    assert np.median(lengths) == pytest.approx(295, abs=2)
    assert lengths.max() == 35_213
    assert np.sort(lengths)[-2] < 20_000
    assert lengths.min() >= 2
    database = inputs.proteins(300, has_longest=False)
    again = inputs.proteins(300, has_longest=False)
    assert len(database) == 300
    assert database.longest < 10_000
    assert np.array_equal(database.codes, again.codes)


def test_proteins_have_swissprots_residues(script: Any) -> None:
    from benchmarks.scan import inputs

    assert sorted(inputs.PER_CENT) == list("ACDEFGHIKLMNPQRSTVWY")
    counts = Counter(inputs.residues(200_000, np.random.default_rng(1)).tobytes().decode())
    for letter, partition in inputs.PER_CENT.items():
        assert counts[letter] / 2000 == pytest.approx(partition, abs=0.2)


def test_queries_and_contigs(script: Any) -> None:
    from benchmarks.scan import inputs

    queries = [query.tobytes() for query in inputs.random_queries([10, 374])]
    assert [*map(len, queries)] == [10, 374]
    assert next(iter(inputs.random_queries([374]))).tobytes() == queries[1]
    contigs = inputs.contigs(50_000, longest=20_000)
    assert contigs.letters == 50_000
    assert 1_000 < contigs.longest <= 20_000
    database = inputs.proteins(20, has_longest=True)
    *_, exact = inputs.similar_queries(database, [100, 300])
    assert exact.tobytes() in database.subject_letters(int(database.order[0]), 0, database.longest).tobytes()


@needs_parasail
def test_parasail_scores_all_letters_as_the_oracle(script: Any, tmp_path: Path) -> None:
    from benchmarks.scan import peer

    queries = sequences_of("ACDEFGHIKLMNPQRSTVWY", "BJOUXZ*ACW", "W" * 3000)
    subjects = ["ACDEFGHIKMNPQRSTVWY", "ZXUOJB*ACW", "BJOUXZ*ACW", "W" * 3000]
    database = database_of(*subjects)
    found = peer.scores(queries, database, BLOSUM62, 2, tmp_path)
    assert found.shape == (3, 4)
    assert found[2, 0] == 33_000, "beyond 16 bits"
    for row, query in enumerate(queries.part(0, 2)):
        for rank, number in enumerate(database.order.tolist()):
            pair = query.tobytes().decode(), subjects[number][:100]
            expected = Comparison(*pair, BLOSUM62.pairwise_scores(), Mode.LOCAL).alignment.score
            assert found[row, rank] == expected


@needs_parasail
def test_scores_of_parasail_are_kept(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.scan import peer

    queries, database = sequences_of("ACDE", "W"), database_of("ACE", "AWWA")
    found = peer.scores(queries, database, BLOSUM62, 1, tmp_path)
    monkeypatch.setattr(peer, "scorer", lambda query, costs: lambda subject: 7)
    assert np.array_equal(peer.scores(queries, database, BLOSUM62, 1, tmp_path), found)
    for others in (
        (sequences_of("ACDEW", "W"), database, BLOSUM62),
        (queries, database_of("ACE", "AWWC"), BLOSUM62),
        (queries, database_of("ACEA", "WWA"), BLOSUM62),
        (queries, database, ScanScoring.of(standard("BLOSUM62"), 10, 1)),
        (queries, database, ScanScoring.of(standard("BLOSUM50"), 11, 1)),
    ):
        assert (peer.scores(*others, 1, tmp_path) == 7).all()
    assert len(list(tmp_path.iterdir())) == 6


@needs_parasail
def test_the_proteome_is_checked_with_as_many_queries_as_asked_for(
    quick: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("queries.fa.gz", "human_proteome.fa.gz"):
        (tmp_path / name).write_text(">a\nMKTAYIAKQR\n>b\nWWWUXBJ*\n>c\nMKTAYQR\n")
    monkeypatch.setattr("benchmarks.scan.inputs.PROTEIN", tmp_path)
    expected: list[tuple[list[str], tuple[int, int, int] | None]] = [
        ([], (3, 3, 9)),
        (["--queries", "2"], (2, 3, 6)),
        (["--queries", "0"], None),
    ]
    for words, counts in expected:
        assert quick.main([*SMALL, "-t", "1", *words, "--work", str(tmp_path), "--json", str(tmp_path / "json")]) == 0
        rows = json.loads((tmp_path / "json").read_text())["checks"]
        real = [row for row in rows if row["what"] == "human proteome"]
        assert [(row["queries"], row["of"], row["pairs"]) for row in real] == ([counts] if counts else [])


def test_nothing_is_timed_where_scores_differ(quick: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from benchmarks.scan import checks

    find, numbers = checks.scores_of, count(1)

    def wrong(*arguments: Any) -> Any:
        found = find(*arguments)
        found[-1, -1] += next(numbers) == 2
        return found

    monkeypatch.setattr(checks, "scores_of", wrong)
    with pytest.raises(SystemExit, match=r"synthetic proteins, BLOSUM62 11/1: 2 and \d+ score .*, so nothing is timed"):
        quick.main([*SMALL, "--work", str(tmp_path)])


@needs_parasail
def test_nothing_is_timed_where_parasail_finds_another_score(
    quick: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.scan.peer.scorer", lambda *_: lambda _: 1)
    with pytest.raises(SystemExit, match="by 1 thread and 1 by parasail, so nothing is timed"):
        quick.main([*SMALL, "--work", str(tmp_path)])


def test_readmap_runs_without_its_peer(
    quick: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.scan.peer.is_installed", lambda: False)
    assert quick.main([*SMALL, "-t", "1", "--work", str(tmp_path)]) == 0
    assert "parasail is not installed, so readmap runs alone" in capsys.readouterr().out


def test_bars_of_scan(script: Any) -> None:
    from benchmarks.scan.bars import hold_scan

    def verdicts(device: str, rate: float, uploaded: float = 0, usual: bool = True, **more: Any) -> list[str | None]:
        on = {"device": device, "threads": 1}
        speeds = [
            {"costs": costs, "query_letters": letters, **on, "gcups": rate, "seconds": 1.0, **more}
            for costs in ("BLOSUM62 11/1", "BLOSUM50 8/2")
            for letters in (10, 374)
        ]
        rates = {"scores": rate, "scores, database uploaded": uploaded}
        scans = [{"what": what, **on, "gcups": value} for what, value in rates.items()]
        return [row["verdict"] for row in hold_scan({"speeds": speeds, "scans": scans}, usual)]

    assert verdicts("cuda:0", 3000, 2000) == ["PASS", "PASS", None, None]
    assert verdicts("cuda:0", 2990, 1990) == ["MISS", "MISS", None, None]
    assert verdicts("cuda:0", 2990, 1990, usual=False) == [None] * 4
    assert verdicts("cpu", 5) == ["PASS"]
    assert verdicts("cpu", 4.9) == ["MISS"]
    assert verdicts("cpu", 5, parasail_seconds=1.0) == [None, "PASS", "PASS"]
    assert verdicts("cpu", 5, parasail_seconds=0.9) == [None, "PASS", "MISS"]
    assert verdicts("cpu", 5, threads=2) == []


def test_the_best_times_are_told_of_works_in_turn(script: Any) -> None:
    from benchmarks.scan.times import best_in_turn

    done: list[str] = []
    backend: Any = SimpleNamespace(synchronize=lambda: None)
    works = {name: (lambda name=name: done.append(name)) for name in ("a", "b")}
    best = best_in_turn(works, 2, backend, before=lambda: done.append("before"))
    assert done == ["before", "a", "before", "b"] * 2
    assert [*best] == ["a", "b"]
    assert all(each.seconds >= 0 and each.cpu_seconds >= 0 for each in best.values())
