"""The suffix array and the prefix table against sorted suffixes, and the check that finds what is out of order."""

import random

import numpy as np
import pytest
from examples import TEXTS, index_of, indexed, random_bases
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.alignment import BARRIER, prefix_table, suffix_order, text_of

from readmap.backend import open_backend
from readmap.errors import IndexFolderError
from readmap.index.index import Index
from readmap.index.suffix_array import Suffixes, build_prefix_table, build_suffix_array, first_disorder, table_bases


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", TEXTS)
def test_order(name: str, force_64_bits: bool) -> None:
    suffixes = indexed(name, force_64_bits).suffixes
    assert suffixes.dtype == (np.uint64 if force_64_bits else np.uint32)
    assert suffixes.tolist() == suffix_order(text_of(TEXTS[name]))


@settings(derandomize=True, max_examples=80, deadline=None)
@given(contigs=st.lists(st.text("ACGTN", min_size=1, max_size=40), min_size=1, max_size=8))
def test_order_of_any_contigs(contigs: list[str]) -> None:
    text = text_of(contigs)
    codes = np.frombuffer(text.translate(str.maketrans(BARRIER + "ACGT", "\0\1\2\3\4")).encode(), np.uint8)
    assert build_suffix_array(codes.copy()).tolist() == suffix_order(text)


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", TEXTS)
def test_prefix_table(backends: str, name: str, force_64_bits: bool) -> None:
    index, text = indexed(name, force_64_bits), text_of(TEXTS[name])
    assert index.prefix_table.dtype == index.suffixes.dtype
    assert index.prefix_table.tolist() == prefix_table(text, index.table_bases)
    for bases in (1, 3, 5):
        table = build_prefix_table(index.reference, index.suffixes, bases, open_backend(backends))
        assert table.dtype == index.suffixes.dtype
        assert table.tolist() == prefix_table(text, bases)


def test_bases_of_the_prefix_table() -> None:
    """About a suffix an entry, within limits."""
    assert [table_bases(length) for length in (0, 1, 4**6, 4**6 + 1, 4**9, 4**12, 10**9)] == [6, 6, 6, 7, 9, 12, 12]


def disorder(text: str, suffixes: Suffixes) -> int | None:
    """The smallest rank that is no base's place or sorts behind its successor, each up to its barrier."""
    places = suffixes.tolist()
    shown = [text[place:].split(BARRIER)[0] if place < len(text) else None for place in places]
    for rank, here in enumerate(shown):
        behind = shown[rank + 1] if rank + 1 < len(shown) else None
        if not here or (behind is not None and here > behind):
            return rank
    return None


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", TEXTS)
def test_no_disorder(backends: str, name: str, force_64_bits: bool) -> None:
    index = indexed(name, force_64_bits)
    assert first_disorder(index.reference, index.suffixes, open_backend(backends)) is None
    index.check(open_backend(backends))


@pytest.mark.parametrize("name", [name for name in TEXTS if name not in ("one base", "no base")])
def test_swapped_suffixes_are_found(backends: str, name: str) -> None:
    index, text = indexed(name, False), text_of(TEXTS[name])
    backend = open_backend(backends)
    generator = np.random.default_rng(3)
    count = len(index.suffixes)
    found = 0
    for _ in range(20):
        a, b = generator.integers(count, size=2)
        spoilt = index.suffixes.copy()
        spoilt[[a, b]] = spoilt[[b, a]]
        expected = disorder(text, spoilt)
        assert first_disorder(index.reference, spoilt, backend) == expected
        found += expected is not None
    assert found or name in ("contigs of one base", "only N")


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
def test_places_that_are_no_base_are_found(backends: str, force_64_bits: bool) -> None:
    index, text = indexed("runs of N", force_64_bits), text_of(TEXTS["runs of N"])
    backend = open_backend(backends)
    largest = np.iinfo(index.suffixes.dtype).max
    for place in (text.index(BARRIER), len(text) - 1, len(text), len(text) + 100, largest):
        for rank in (0, 1, len(index.suffixes) // 2, len(index.suffixes) - 1):
            spoilt = index.suffixes.copy()
            spoilt[rank] = place
            expected = disorder(text, spoilt)
            assert expected is not None
            assert first_disorder(index.reference, spoilt, backend) == expected


def test_disorder_behind_a_long_common_prefix_is_found(backends: str) -> None:
    repeat = random_bases(random.Random(4), 5_000)
    index = index_of([repeat + "A", repeat + "C"])
    text = text_of([repeat + "A", repeat + "C"])
    backend = open_backend(backends)
    ranks = {place: rank for rank, place in enumerate(index.suffixes.tolist())}
    for offset in (0, 1, 63, 64, 65, 4_000, 4_980):
        first, second = ranks[offset], ranks[5_002 + offset]
        assert second == first + 1
        spoilt = index.suffixes.copy()
        spoilt[[first, second]] = spoilt[[second, first]]
        assert text[offset:5_001] < text[5_002 + offset : 10_003]
        assert first_disorder(index.reference, spoilt, backend) == first


def test_order_of_a_megabase_of_one_letter_is_checked(backends: str) -> None:
    index = index_of(["A" * 1_000_000])
    assert first_disorder(index.reference, index.suffixes, open_backend(backends)) is None


def test_check_names_the_rank() -> None:
    index = indexed("random", False)
    spoilt = index.suffixes.copy()
    spoilt[[100, 300]] = spoilt[[300, 100]]
    with pytest.raises(IndexFolderError, match="suffix_array is out of order at rank 100"):
        Index(index.reference, spoilt, index.prefix_table, index.table_bases, None, "ref.fa").check(open_backend("cpu"))
