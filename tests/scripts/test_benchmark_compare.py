"""scripts/benchmark compare and compare-pairs on small sequences. No time is asserted."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles.comparison import Comparison

from readmap.backend import open_backend
from readmap.pairwise.device_sequences import sequences_from_texts
from readmap.pairwise.parameters import Mode, MatchScores

HAS_PARASAIL = find_spec("parasail") is not None
SMALL = ["--bases", "700", "300", "--similar", "5000", "--runs", "1"]


@pytest.fixture
def quick(script: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, without the large checks."""
    monkeypatch.setattr("benchmarks.compare.inputs.PAIRS", Path("none"))
    monkeypatch.setattr("benchmarks.compare.checks.MIDDLE", 2000)
    monkeypatch.setattr("benchmarks.compare.checks.FEW_OF_PEER", 50)
    return script


def test_compare_reports_checked_scores_and_is_drawn(quick: Any, backends: str, tmp_path: Path) -> None:
    words = ["--device", backends, "-t", "2", "--label", "test", "--json", str(tmp_path / "figures.json")]
    assert quick.main(["compare", *SMALL, *words, "--figures", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "figures.json").read_text())
    assert report["checked"] is True
    assert report["same_as_parasail"] == HAS_PARASAIL
    assert len(report["same"]) == (6 if backends == "cpu" else 9)
    assert report["versions"]["parasail"] or not HAS_PARASAIL
    assert report["device"].startswith(backends)
    threads = [1, 2] if backends == "cpu" else [2]
    rows = [(row["query_bases"], row["threads"]) for row in report["long_pairs"]]
    assert rows == [(bases, count) for bases in (300, 700) for count in threads]
    for row in report["long_pairs"]:
        assert ("parasail_gcups" in row) == (HAS_PARASAIL and backends == "cpu" and row["threads"] == 1)
        assert row["gcups"] > 0
    whats = ["score, unpruned", "score", "alignment"]
    assert [row["what"] for row in report["similar"]] == whats
    assert len({row["score"] for row in report["similar"]}) == 1
    assert {row["verdict"] for row in report["bars"]} == {None}, "the bars are for other sizes"
    drawn = tmp_path / "compare-gcups.png"
    assert drawn.read_bytes().startswith(b"\x89PNG")
    drawn.unlink()
    again = [str(tmp_path / "figures.json")] * 2
    assert quick.main(["figures", *again, "--figures", str(tmp_path)]) == 0
    assert drawn.read_bytes().startswith(b"\x89PNG")


def test_compare_pairs_report_every_mode(quick: Any, backends: str, tmp_path: Path) -> None:
    words = ["--device", backends, "--pairs", "200", "--runs", "1", "--json", str(tmp_path / "figures.json")]
    assert quick.main(["compare-pairs", *words]) == 0
    report = json.loads((tmp_path / "figures.json").read_text())
    assert report["checked_pairs"] == 200
    assert report["same_as_parasail"] == (50 if HAS_PARASAIL else 0)
    kinds = [(row["mode"], row["what"]) for row in report["batches"]]
    assert kinds == [(str(mode), what) for mode in Mode for what in ("score", "CIGAR")]
    for row in report["batches"]:
        assert ("parasail" in row) == (HAS_PARASAIL and backends == "cpu")
        assert row["gcups"] == pytest.approx(row["pairs_a_second"] * 150 * 250 / 1e9, rel=0.01)
    names = {row["kernel"] for row in report["kernels"]}
    assert ("trace_pairs_16" in names) == (backends == "cuda")
    assert {row["verdict"] for row in report["bars"]} == {None}


def test_inputs_are_as_similar_as_they_are_called(script: Any) -> None:
    from benchmarks.compare import inputs

    pair = inputs.similar_pair(2000, 0.05)
    query, target = (side.tobytes().decode() for side in pair[1:])
    alignment = Comparison(query[:400], target[:400], MatchScores(), Mode.LOCAL).alignment
    assert alignment.score > 150
    assert query != target
    queries, targets = inputs.short_pairs(30)
    for one, other in zip(queries, targets, strict=True):
        assert (len(one), len(other)) == (150, 250)
    for one, other in list(zip(queries, targets, strict=True))[:5]:
        found = Comparison(one.tobytes().decode(), other.tobytes().decode(), MatchScores(), Mode.LOCAL).alignment
        assert found.score > 20
    assert np.array_equal(queries.letters, inputs.short_pairs(30)[0].letters)


def test_the_herpesviruses_are_held_to_the_paper(quick: Any, monkeypatch: pytest.MonkeyPatch, shared: Path) -> None:
    from benchmarks.compare import checks, inputs

    monkeypatch.setattr(inputs, "PAIRS", shared / "data/pairs")
    viruses = inputs.herpesviruses()
    if viruses is None:
        pytest.skip("the herpesviruses are not there")
    assert (len(viruses.query), len(viruses.target)) == (162_114, 171_823)
    options = SimpleNamespace(threads=2)
    part = viruses._replace(query=viruses.query[:1000])
    with pytest.raises(SystemExit, match=r"the herpesviruses score .* in the paper \(18, 41058, 44353\), so nothing"):
        checks.check_long(options, open_backend("cpu", 2), part)


@pytest.mark.parametrize(
    ("field", "calls", "message"),
    [
        ("scores", {2}, "local alignments of pairs: 2 threads and 1 thread do not find the same"),
        ("target_ends", {4}, "local scores alone, by 2 threads, are not those of the alignments"),
        ("scores", {1, 2, 3, 4}, "the score is"),
        ("operations", {1, 2}, "the number of"),
    ],
)
def test_nothing_is_timed_where_pairs_differ(
    quick: Any, monkeypatch: pytest.MonkeyPatch, field: str, calls: set[int], message: str
) -> None:
    """calls: those whose result is made wrong; alignments are found first, then scores alone."""
    from benchmarks.compare import checks

    align, numbers = checks.align_batch, count(1)

    def wrong(*arguments: Any, **named: Any) -> Any:
        found = align(*arguments, **named)
        values = getattr(found, field).copy()
        values[:1] += next(numbers) in calls
        return replace(found, **{field: values})

    monkeypatch.setattr(checks, "align_batch", wrong)
    with pytest.raises(SystemExit, match=message):
        quick.main(["compare-pairs", "--pairs", "20", "--runs", "1"])


@pytest.mark.skipif(not HAS_PARASAIL, reason="parasail is not installed")
def test_nothing_is_timed_where_parasail_finds_another_score(quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.compare.peer.aligner", lambda *_, **__: lambda *_: SimpleNamespace(score=1))
    for words in (["compare", *SMALL], ["compare-pairs", "--pairs", "20"]):
        with pytest.raises(SystemExit, match="local scores are not parasail's, so nothing is timed"):
            quick.main(words)


def test_readmap_runs_without_its_peer(
    quick: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.compare.peer.is_installed", lambda: False)
    for words in (["compare", *SMALL], ["compare-pairs", "--pairs", "20", "--runs", "1"]):
        assert quick.main(words) == 0
        assert "parasail is not installed, so readmap runs alone" in capsys.readouterr().out


def test_bars_of_compare(script: Any) -> None:
    from benchmarks.compare.bars import hold_long_pairs

    def verdicts(device: str, usual: bool, alignment: float, *rows: dict[str, Any]) -> list[str | None]:
        same = {"pair": "random", "device": device}
        pairs = [{**same, "query_bases": 10**6, "target_bases": 10**6, **row} for row in rows]
        seconds = {"score, unpruned": 2.0, "score": 1.0, "alignment": alignment}
        similar = [{**same, "query_bases": 9, "what": what, "seconds": taken} for what, taken in seconds.items()]
        found = hold_long_pairs({"long_pairs": pairs, "similar": similar}, usual)
        return [row["verdict"] for row in found]

    fast, slow = {"gcups": 1300}, {"gcups": 1100}
    assert verdicts("cuda:0", True, 2.5, fast, fast) == ["PASS", "PASS", "PASS", "PASS", None]
    assert verdicts("cuda:0", True, 2.6, fast, slow) == ["PASS", "MISS", "MISS", "MISS", None]
    assert verdicts("cuda:0", True, 2.5, {"gcups": 300, "query_bases": 999_999}) == ["PASS", None]
    assert verdicts("cuda:0", False, 2.6, slow) == [None] * 4
    times: dict[str, Any] = {"parasail_gcups": 1.0, "parasail_seconds": 1.0}
    paper = times | {"pair": "herpesviruses"}
    assert verdicts("cpu", True, 9.0, paper | {"seconds": 1.0}, fast) == ["PASS", None, None]
    assert verdicts("cpu", True, 9.0, paper | {"seconds": 1.1}) == ["MISS", None, None]
    assert verdicts("cpu", True, 9.0, times | {"seconds": 1.1}) == [None, None, None]


def test_bars_of_compare_pairs(script: Any) -> None:
    from benchmarks.compare.bars import hold_batches

    def verdicts(device: str, score: float, cigars: float, usual: bool = True, **more: Any) -> list[str | None]:
        row = {"device": device, "threads": 1, "gcups": score, "pairs_a_second": cigars, **more}
        rows = [row | {"mode": mode, "what": what} for mode in ("local", "global") for what in ("score", "CIGAR")]
        return [found["verdict"] for found in hold_batches({"batches": rows}, usual)]

    assert verdicts("cuda:0", 1000, 1e7) == ["PASS", "PASS", None, None]
    assert verdicts("cuda:0", 990, 9.9e6) == ["MISS", "MISS", None, None]
    assert verdicts("cuda:0", 990, 9.9e6, usual=False) == [None] * 4
    assert verdicts("cpu", 1, 50_000) == [None, "PASS", None, None]
    assert verdicts("cpu", 1, 49_000) == [None, "MISS", None, None]
    assert verdicts("cpu", 1, 49_000, threads=2) == []


def test_kernels_are_timed_between_events(script: Any) -> None:
    from benchmarks.compare.times import kernels_of

    clock = iter(range(100))

    class Event:
        def record(self) -> None:
            self.at = next(clock)

    backend = open_backend("cpu", 1)
    stand_in = SimpleNamespace(Event=Event, get_elapsed_time=lambda begin, end: float(end.at - begin.at))
    backend.xp = SimpleNamespace(cuda=stand_in, ndarray=np.ndarray, empty=np.empty)  # type: ignore[assignment]
    rows = kernels_of(lambda: [sequences_from_texts(["ACGT"], backend) for _ in range(2)], backend)
    assert rows == [{"kernel": "encode_letters", "launches": 2, "milliseconds": 2.0}]
    assert "run" not in vars(backend)
