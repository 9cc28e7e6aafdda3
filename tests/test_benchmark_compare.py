"""scripts/benchmark compare on small sequences. No time is asserted."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from oracle_comparison import Comparison

from readmap.compare.parameters import Mode, Scores

HAS_PARASAIL = find_spec("parasail") is not None
SMALL = ["--bases", "700", "300", "--similar", "5000", "--runs", "1"]


@pytest.fixture
def quick(script: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, without the large checks."""
    monkeypatch.setattr("benchmarks.compare.inputs.PAIRS", Path("none"))
    monkeypatch.setattr("benchmarks.compare.checks.MIDDLE", 2000)
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


def test_inputs_are_as_similar_as_they_are_called(script: Any) -> None:
    from benchmarks.compare import inputs

    pair = inputs.similar_pair(2000, 0.05)
    query, target = (side.tobytes().decode() for side in pair[1:])
    alignment = Comparison(query[:400], target[:400], Scores(), Mode.LOCAL).alignment
    assert alignment.score > 150
    assert query != target


@pytest.mark.skipif(not HAS_PARASAIL, reason="parasail is not installed")
def test_nothing_is_timed_where_parasail_finds_another_score(quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.compare.peer.aligner", lambda *_, **__: lambda *_: SimpleNamespace(score=1))
    for words in [["compare", *SMALL]]:
        with pytest.raises(SystemExit, match="local scores are not parasail's, so nothing is timed"):
            quick.main(words)


def test_readmap_runs_without_its_peer(
    quick: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.compare.peer.is_installed", lambda: False)
    for words in [["compare", *SMALL]]:
        assert quick.main(words) == 0
        assert "parasail is not installed, so readmap runs alone" in capsys.readouterr().out


def test_bars_of_compare(script: Any) -> None:
    from benchmarks.compare.bars import hold_long_pairs

    def verdicts(device: str, usual: bool, alignment: float, *rows: dict[str, float]) -> list[str | None]:
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
    times = {"parasail_gcups": 1.0, "parasail_seconds": 1.0}
    assert verdicts("cpu", True, 9.0, times | {"seconds": 1.0}, fast) == ["PASS", None, None]
    assert verdicts("cpu", True, 9.0, times | {"seconds": 1.1}) == ["MISS", None, None]
