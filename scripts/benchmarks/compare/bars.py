"""Compare the main figures of `compare` and `compare-pairs` with their targets."""

from __future__ import annotations

from benchmarks.common import Row, figure

LONG = 1_000_000  # length of both sequences at which the GPU must reach its full speed


def hold_long_pairs(report: Row, usual: bool) -> list[Row]:
    """Return rows of the figures, with verdicts if `usual` (the default sizes)."""
    pairs, similar, rows = report["long_pairs"], {row["what"]: row for row in report["similar"]}, []
    for row in pairs:
        if "parasail_gcups" in row:
            name = f"{_called(row)}, a thread, readmap / parasail"
            rows.append(figure(name, row["parasail_seconds"] / row["seconds"], "times", ">=", _of_peer(row)))
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


def hold_batches(report: Row, usual: bool) -> list[Row]:
    """Return rows of the figures, with verdicts if `usual` (the default number of pairs)."""
    rows = []
    for row in report["batches"]:
        kind, rate = f"{row['mode']}, {row['what']}", row["pairs_a_second"]
        is_local, is_traced = row["mode"] == "local", row["what"] == "CIGAR"
        if row["device"] != "cpu":
            rows.append(
                figure(kind, rate / 1e6, "M pairs/s", ">=", 10.0 if is_local else None)
                if is_traced
                else figure(kind, row["gcups"] / 1e3, "TCUPS", ">=", 1.0 if is_local else None)
            )
        elif row["threads"] == 1:
            bar = 50.0 if is_local and is_traced else None
            rows.append(figure(f"{kind}, a thread", rate / 1e3, "k pairs/s", ">=", bar))
            if "parasail_pairs_a_second" in row:
                name = f"{kind}, a thread, readmap / parasail"
                rows.append(figure(name, rate / row["parasail_pairs_a_second"], "times"))
    return rows if usual else _without_bars(rows)


def _of_peer(row: Row) -> float | None:
    """Return the target ratio to parasail; none for the short random pairs, which fit parasail's fastest cache."""
    return 1.0 if row["pair"] == "herpesviruses" else None


def _called(row: Row) -> str:
    return f"{row['pair']}, {row['query_bases']:,}"


def _without_bars(rows: list[Row]) -> list[Row]:
    return [row | {"wanted": "", "bar": None, "verdict": None} for row in rows]
