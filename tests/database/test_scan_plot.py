"""Test the data of the score histograms; the pictures themselves are inspected by people."""

import re
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture(scope="module")
def plot() -> ModuleType:
    module: ModuleType = pytest.importorskip("readmap.database.plot")
    return module


def scores(best: int, count: int = 1000) -> np.ndarray:
    """Return scores as in a scan: most about 35, and one best score."""
    found = np.random.default_rng(4).gumbel(33, 4, count).clip(0, best).astype(np.int32)
    found[0] = best
    return found


@pytest.mark.parametrize("best", [1, 2, 35, 60, 500, 6190, 180_000])
def test_every_score_is_in_a_bin(plot: ModuleType, best: int) -> None:
    found = scores(best)
    counts = plot.count_scores(found)
    assert (len(counts), counts.sum()) == (best + 1, len(found))
    edges = plot.score_bins(counts)
    assert max(1, found.min()) == edges[0]
    assert edges[-2] <= best < edges[-1]
    widths = np.diff(edges)
    assert widths.min() >= 1
    assert np.diff(widths).min(initial=0) >= 0
    assert len(widths) <= 2 * plot.BINS
    assert plot._binned(counts, edges).sum() == len(found)


def test_no_scores(plot: ModuleType) -> None:
    counts = plot.count_scores(np.zeros(0, np.int32))
    assert plot.score_bins(counts).tolist() == [1, 2]
    picture = plot.Histograms()
    picture.add(b"none", counts, np.zeros(0, np.int32))
    assert "0 scores, 0 hits<" in picture.draw("svg").decode()


def drawn(plot: ModuleType, queries: int, file_format: str = "svg") -> bytes:
    picture = plot.Histograms("E = 10")
    for number in range(queries):
        found = scores(100 * (number + 1))
        picture.add(b"query$%d" % number, plot.count_scores(found), found[found > 60], 60.5)
    written: bytes = picture.draw(file_format)
    return written


def texts(svg: bytes) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]+)</text>", svg.decode())


def test_a_single_query(plot: ModuleType) -> None:
    shown = texts(drawn(plot, 1))
    hits = int((scores(100) > 60).sum())
    assert {"query$0", f"1,000 scores, {hits} hits, the best 100", "hits", "all sequences", "score"} <= {*shown}
    assert shown.count(" E = 10") + shown.count("E = 10") == 1


@pytest.mark.parametrize("queries", [2, 5])
def test_one_panel_per_query(plot: ModuleType, queries: int) -> None:
    shown = texts(drawn(plot, queries))
    assert [text for text in shown if text.startswith("query")] == [f"query${number}" for number in range(queries)]
    assert sum(text.strip() == "E = 10" for text in shown) == queries
    assert shown.count("hits") == 1


def test_many_queries_share_a_panel(plot: ModuleType) -> None:
    shown = texts(drawn(plot, 13))
    hits = sum(int((scores(100 * (number + 1)) > 60).sum()) for number in range(13))
    assert "13 queries" in shown
    assert f"13,000 scores, {hits} hits, the best 1,300" in shown
    assert not [text for text in shown if text.strip() == "E = 10" or text.startswith("query$")]


@pytest.mark.parametrize(("file_format", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_forms(plot: ModuleType, file_format: str, start: bytes) -> None:
    picture = drawn(plot, 2, file_format)
    assert picture.startswith(start)
    assert picture == drawn(plot, 2, file_format)
