"""Test readmap.compare."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import readmap
from readmap.errors import DataError, UsageError


def test_result() -> None:
    found = readmap.compare("CCACGTTTGACCATTT", "ACGTTGACCATGGG", match=2, gap_first=3, gap_extend=1, device="cpu")
    places = found.query_start, found.query_end, found.target_start, found.target_end
    assert (found.score, places, found.strand, found.cigar) == (19, (2, 14, 0, 11), 1, "3=1I8=")
    assert found.operations.tolist() == [3 << 4 | 7, 1 << 4 | 1, 8 << 4 | 7]
    counts = found.equal, found.different, found.inserted, found.deleted, found.gap_openings, found.columns
    assert counts == (11, 0, 1, 0, 1, 12)
    assert found.identity == pytest.approx(11 / 12)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.score = 3  # type: ignore[misc]
    assert isinstance(found, readmap.Comparison)


def test_types_of_sequences() -> None:
    for text in ("acguN", b"ACGTN", bytearray(b"ACGUn"), np.frombuffer(b"ACGTN", np.uint8)):
        sequence: Any = text
        assert readmap.compare(sequence, "TACGTN", device="cpu").cigar == "4="
    assert readmap.compare("", "ACGT", device="cpu").score == 0
    nothing = readmap.compare("AA", "CC", device="cpu")
    assert (nothing.score, nothing.query_start, nothing.target_end, nothing.identity) == (0, -1, -1, None)


def test_strands_and_score_only() -> None:
    for strand, way in (("reverse", -1), ("both", -1), ("forward", 1)):
        found = readmap.compare("GGGGGAACCC", "GGGTTCC", strand=strand, device="cpu")
        assert (found.strand, found.score) == (way, 7 if way < 0 else 3)
    found = readmap.compare("GGGGGAACCC", "GGGTTCC", strand="both", score_only=True, device="cpu", memory=1 << 20)
    assert (found.query_start, found.query_end, found.target_start, found.target_end) == (3, -1, -1, 7)
    assert (found.cigar, found.columns) == ("", 0)


def test_errors() -> None:
    with pytest.raises(DataError, match=r"query, position 3: expected a nucleotide \(IUPAC\), found b'-'"):
        readmap.compare("AC-T", "A", device="cpu")
    with pytest.raises(UsageError, match="strand is 'up', expected both, forward, reverse"):
        readmap.compare("A", "A", strand="up", device="cpu")
    with pytest.raises(UsageError, match="the first letter of a gap costs 1, expected at least 2"):
        readmap.compare("A", "A", gap_first=1, device="cpu")


def test_dir_lists_public_names() -> None:
    assert set(readmap.__all__) <= set(dir(readmap))
    assert all(callable(getattr(readmap, name)) for name in ("compare", "scan", "align_pairs"))
