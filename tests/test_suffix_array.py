"""The suffix array and the prefix table against sorted suffixes, and the check that finds what is out of order."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from examples import fibonacci, index_of, random_bases
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import BARRIER, prefix_table, suffix_order, text_of

from readmap.backend import open_backend
from readmap.errors import IndexFolderError
from readmap.index.index import Index
from readmap.index.suffix_array import Suffixes, build_prefix_table, build_suffix_array, first_disorder, table_bases

DRAW = random.Random(2)
SPACER = random_bases(DRAW, 90)
TEXTS = {
    "random": [random_bases(DRAW, 700)],
    "one base": ["G"],
    "one letter": ["T" * 400],
    "one letter, contigs": ["A" * length for length in range(1, 25)],
    "two letters": [random_bases(DRAW, 500, "AT")],
    "fibonacci": [fibonacci(600)],
    "fibonacci, contigs": [fibonacci(144, "GT"), fibonacci(233, "GT"), fibonacci(89, "TG")],
    "period of three": ["CAG" * 150],
    "copies": [SPACER, SPACER, SPACER[1:], "N" + SPACER, SPACER + "A"],
    "N at both ends": ["N" * 70 + random_bases(DRAW, 200) + "N" * 70],
    "runs of N": [random_bases(DRAW, 800, "ACGT" * 5 + "N").replace("NA", "N" * 40)],
    "many N": [random_bases(DRAW, 300, "AN")],
    "only N": ["N" * 100, "A"],
    "ambiguous letters": [random_bases(DRAW, 400, "ACGTACGTACGTRYKM")],
    "many contigs": [random_bases(DRAW, 1 + i % 7) for i in range(200)],
    "contigs of one base": list("ACGTTGCAAACC" * 10),
}


@pytest.fixture(scope="module")
def indexes() -> Callable[[str, bool], Index]:
    made: dict[tuple[str, bool], Index] = {}

    def make(name: str, force_64_bits: bool) -> Index:
        if (name, force_64_bits) not in made:
            made[name, force_64_bits] = index_of(TEXTS[name], force_64_bits)
        return made[name, force_64_bits]

    return make


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", TEXTS)
def test_order(indexes: Callable[[str, bool], Index], name: str, force_64_bits: bool) -> None:
    suffixes = indexes(name, force_64_bits).suffixes
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
def test_prefix_table(backends: str, indexes: Callable[[str, bool], Index], name: str, force_64_bits: bool) -> None:
    index, text = indexes(name, force_64_bits), text_of(TEXTS[name])
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
def test_no_disorder(backends: str, indexes: Callable[[str, bool], Index], name: str, force_64_bits: bool) -> None:
    index = indexes(name, force_64_bits)
    assert first_disorder(index.reference, index.suffixes, open_backend(backends)) is None
    index.check(open_backend(backends))


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "one base"])
def test_swapped_suffixes_are_found(backends: str, indexes: Callable[[str, bool], Index], name: str) -> None:
    index, text = indexes(name, False), text_of(TEXTS[name])
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
def test_places_that_are_no_base_are_found(
    backends: str, indexes: Callable[[str, bool], Index], force_64_bits: bool
) -> None:
    index, text = indexes("runs of N", force_64_bits), text_of(TEXTS["runs of N"])
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


def test_check_names_the_rank(indexes: Callable[[str, bool], Index]) -> None:
    index = indexes("random", False)
    spoilt = index.suffixes.copy()
    spoilt[[100, 300]] = spoilt[[300, 100]]
    with pytest.raises(IndexFolderError, match="suffix_array is out of order at rank 100"):
        Index(index.reference, spoilt, index.prefix_table, index.table_bases, None, "ref.fa").check(open_backend("cpu"))
