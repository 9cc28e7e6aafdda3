"""Fixtures of the tests of pairwise comparisons."""

import pytest

from readmap.pairwise import grid, long_pairs


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small tiles and slabs, so that small matrices have several of them."""
    monkeypatch.setattr(grid, "TRACED_TILE", 150)
    monkeypatch.setattr(long_pairs, "GROUP_CELLS", 1)
    monkeypatch.setattr(long_pairs, "MIN_GROUP_STRIPS", 1)
