"""The figures of `compare` that matter most, each beside its bar where it has one."""

from __future__ import annotations

from benchmarks.common import Row, figure

LONG = 1_000_000  # bases of both sequences, from which on the GPU has to be at its full speed


def hold_long_pairs(report: Row, usual: bool) -> list[Row]:
    """Verdicts where the sizes are those of the bars."""
    pairs, similar, rows = report["long_pairs"], {row["what"]: row for row in report["similar"]}, []
    for row in pairs:
        if "parasail_gcups" in row:
            name = f"{_called(row)}, a thread, readmap / parasail"
            rows.append(figure(name, row["parasail_seconds"] / row["seconds"], "times", ">=", 1.0))
    on_gpu = [row for row in pairs if row["device"] != "cpu"]
    long = [row for row in on_gpu if min(row["query_bases"], row["target_bases"]) >= LONG]
    rows += [figure(_called(row), row["gcups"] / 1e3, "TCUPS", ">=", 1.2) for row in long]
    if long:
        rates = [row["gcups"] for row in long]
        rows.append(figure(f"lowest / highest, from {LONG:,}", min(rates) / max(rates), "times", ">=", 0.9))
    pair, score = _called(similar["score"]), similar["score"]["seconds"]
    bar = 2.5 if on_gpu else None
    rows.append(figure(f"{pair}, alignment / score", similar["alignment"]["seconds"] / score, "times", "<=", bar))
    rows.append(figure(f"{pair}, score, unpruned / pruned", similar["score, unpruned"]["seconds"] / score, "times"))
    return rows if usual else _without_bars(rows)


def _called(row: Row) -> str:
    return f"{row['pair']}, {row['query_bases']:,}"


def _without_bars(rows: list[Row]) -> list[Row]:
    return [row | {"wanted": "", "bar": None, "verdict": None} for row in rows]
