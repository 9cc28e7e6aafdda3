"""Compare the main figures of `scan` with their targets."""

from __future__ import annotations

from benchmarks.common import Row, figure
from benchmarks.scan.checks import BLOSUM62, called

BAR_LENGTH = 374
CUDASW = 3_819.0  # GCUPS of CUDASW++ 4.0 on an H200 at that length, as published


def hold_scan(report: Row, usual: bool) -> list[Row]:
    """Return rows of the figures, with verdicts if `usual` (the default sizes)."""
    rows = []
    for device, threads in dict.fromkeys((row["device"], row["threads"]) for row in report["speeds"]):
        speeds = [row for row in report["speeds"] if _is(row, device, threads) and row["costs"] == called(BLOSUM62)]
        scans = {row["what"]: row for row in report["scans"] if _is(row, device, threads)}
        if device != "cpu":
            rows += _of_gpu(speeds, scans)
        elif threads == 1:
            rows += _of_thread(speeds)
    return rows if usual else [row | {"wanted": "", "bar": None, "verdict": None} for row in rows]


def _of_gpu(speeds: list[Row], scans: dict[str, Row]) -> list[Row]:
    resident, uploaded = (scans[name]["gcups"] / 1e3 for name in ("scores", "scores, database uploaded"))
    fastest = max(speeds, key=lambda row: row["gcups"])
    return [
        figure(f"{BAR_LENGTH} aa, database resident", resident, "TCUPS", ">=", 3.0),
        figure(f"{BAR_LENGTH} aa, database uploaded", uploaded, "TCUPS", ">=", 2.0),
        figure(f"{BAR_LENGTH} aa, readmap / CUDASW++ 4.0 as published", resident * 1e3 / CUDASW, "times"),
        figure(f"{fastest['query_letters']:,} aa, the fastest", fastest["gcups"] / 1e3, "TCUPS"),
    ]


def _of_thread(speeds: list[Row]) -> list[Row]:
    rows = []
    for row in speeds:
        letters = row["query_letters"]
        if letters == BAR_LENGTH:
            rows.append(figure(f"{letters} aa, a thread", row["gcups"], "GCUPS", ">=", 5.0))
        if "parasail_seconds" in row:
            bar = 1.0 if letters >= BAR_LENGTH else None
            ratio = row["parasail_seconds"] / row["seconds"]
            rows.append(figure(f"{letters:,} aa, a thread, readmap / parasail", ratio, "times", ">=", bar))
    return rows


def _is(row: Row, device: str, threads: int) -> bool:
    return (row["device"], row["threads"]) == (device, threads)
