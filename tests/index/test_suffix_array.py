"""The suffix array and the prefix table compared with sorted strings, and the check for suffixes out of order."""

import random
from typing import Any

import numpy as np
import pytest
from examples import TEXTS, held, index_of, indexed, random_bases, with_table
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.alignment import BARRIER, prefix_table, suffix_order, text_of

from readmap.backend import Backend, open_backend
from readmap.backend.team import Team
from readmap.errors import IndexFolderError
from readmap.index import suffix_array
from readmap.index.index import Index
from readmap.index.suffix_array import (
    Suffixes,
    build_prefix_table,
    build_suffix_array,
    first_unsorted_rank,
    loaded_table_bases,
    plan_suffix_array,
    table_bases,
)


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", TEXTS)
def test_order(name: str, force_64_bits: bool) -> None:
    suffixes = indexed(name, force_64_bits).suffixes
    assert suffixes.dtype == (np.uint64 if force_64_bits else np.uint32)
    assert suffixes.tolist() == suffix_order(text_of(TEXTS[name]))


@settings(derandomize=True, max_examples=80, deadline=None)
@given(
    contigs=st.lists(st.text("ACGTN", min_size=1, max_size=40), min_size=1, max_size=8), copies=st.sampled_from([1, 60])
)
def test_order_of_any_contigs(contigs: list[str], copies: int) -> None:
    """Few barriers are sorted by divsufsort, others by kernels; suffixes that barriers make equal are in order of
    position.
    """
    index = index_of(contigs * copies)
    assert index.suffixes.tolist() == suffix_order(text_of(contigs * copies))


@pytest.mark.parametrize("contigs", [251, 252, 253, 254])
def test_maximum_barriers_of_divsufsort(contigs: int) -> None:
    index, backend = index_of(["ACGT"] * contigs), open_backend("cpu", 1)
    plan = plan_suffix_array(index.reference, index.reference.to_device(backend), Team.of(backend))
    assert (plan.sort is None) == (contigs <= 252)
    assert index.suffixes.tolist() == suffix_order(text_of(["ACGT"] * contigs))


@pytest.mark.parametrize(("threads", "small", "by_kernels"), [(1, 0, False), (2, 0, True), (2, 2**24, False)])
def test_choice_of_the_builder(threads: int, small: int, by_kernels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suffix_array, "SMALL", small)
    index, team = indexed("runs of N", False), Team.of(open_backend("cpu", threads))
    held = index.reference.to_device(team.first)
    plan = plan_suffix_array(index.reference, held, team)
    assert (plan.sort is not None) == by_kernels
    (order,) = build_suffix_array([held], plan, team)
    assert np.array_equal(order, index.suffixes)


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", TEXTS)
def test_prefix_table(backends: str, name: str, force_64_bits: bool) -> None:
    index, text = indexed(name, force_64_bits), text_of(TEXTS[name])
    assert index.prefix_table.dtype == index.suffixes.dtype
    assert index.prefix_table.tolist() == prefix_table(text, index.table_bases)
    backend = open_backend(backends)
    reference, _, order = held(index, backend)
    for bases in (1, 3, 5):
        table = build_prefix_table(reference, order, bases, backend)
        assert table.dtype == index.suffixes.dtype
        assert table.tolist() == prefix_table(text, bases)


def test_table_bases() -> None:
    """About one suffix per entry, within limits."""
    assert [table_bases(length) for length in (0, 1, 4**6, 4**6 + 1, 4**9, 4**12, 10**9)] == [6, 6, 6, 7, 9, 12, 12]


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", [name for name in TEXTS if len(indexed(name, False).suffixes)])
def test_table_built_at_loading(backends: str, name: str, force_64_bits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has the chosen number of bases, and counts in the index's memory."""
    index, backend = indexed(name, force_64_bits), open_backend(backends)
    found = with_table(index, 8, backend, monkeypatch)
    assert found.prefix_table.dtype == index.suffixes.dtype
    assert found.prefix_table.tolist() == prefix_table(text_of(TEXTS[name]), 8)
    arrays = [found.suffixes, found.prefix_table, found.edges, found.entries]
    assert index.host_index(backend).nbytes == index.reference.nbytes + sum(array.nbytes for array in arrays)


class Device:
    """The attributes of a backend that the choice of the loaded table reads."""

    def __init__(self, max_table_bases: int, free: int | None = None) -> None:
        self.max_table_bases, self._free = max_table_bases, free

    def memory(self) -> tuple[int, int] | None:
        return None if self._free is None else (self._free, 2**40)


@pytest.mark.parametrize(
    ("most", "free", "suffixes", "bases"),
    [
        *((15, None, 4**13 - 1, 12), (15, None, 4**13, 13), (15, None, 10**9, 14), (15, None, 3 * 10**9, 15)),
        *((15, None, 2**40, 15), (14, None, 3 * 10**9, 14), (12, None, 3 * 10**9, 12), (6, None, 3 * 10**9, 12)),
        *((15, 2**35, 3 * 10**9, 15), (15, 2**34, 3 * 10**9, 15), (15, 2**34 - 16, 3 * 10**9, 14)),
        *((15, 2**31, 3 * 10**9, 13), (15, 2**30 - 16, 3 * 10**9, 12), (15, 0, 3 * 10**9, 12), (15, 1000, 4**13, 12)),
    ],
)
def test_loaded_table_bases(most: int, free: int | None, suffixes: int, bases: int) -> None:
    """One suffix per entry, in at most a quarter of the memory left by the index; at least the stored table's bases."""
    others = 10**9
    order = np.broadcast_to(np.uint32(0), suffixes)
    device: Any = Device(most, None if free is None else others + free)
    assert loaded_table_bases(12, order, others, device) == bases


def test_memory_of_64_bit_entries() -> None:
    device: Any = Device(15, 2**32)
    found = [loaded_table_bases(12, np.broadcast_to(dtype(0), 2**33), 0, device) for dtype in (np.uint32, np.uint64)]
    assert found == [14, 13]


def find_disorder(index: Index, suffixes: Suffixes, backend: Backend) -> int | None:
    """Return the rank that the check reports for other suffixes."""
    reference, length, _ = held(index, backend)
    return first_unsorted_rank(reference, length, backend.to_device(suffixes), backend)


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", TEXTS)
def test_no_disorder(backends: str, name: str, force_64_bits: bool) -> None:
    index, backend = indexed(name, force_64_bits), open_backend(backends)
    assert find_disorder(index, index.suffixes, backend) is None
    index.check(backend)


@pytest.mark.parametrize("name", [name for name in TEXTS if len(indexed(name, False).suffixes) > 1])
def test_swapped_suffixes_are_found(backends: str, name: str) -> None:
    """Any two suffixes, even if equal up to a barrier."""
    index, backend = indexed(name, False), open_backend(backends)
    generator, count = np.random.default_rng(3), len(index.suffixes)
    for distance in (1, 1, 1, 1, 1, 2, 3, count - 1, *generator.integers(1, count, 10)):
        a = int(generator.integers(max(count - distance, 1)))
        b = min(a + distance, count - 1)
        spoilt = index.suffixes.copy()
        spoilt[[a, b]] = spoilt[[b, a]]
        assert (find_disorder(index, spoilt, backend) is None) == (a == b)


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
def test_invalid_or_repeated_positions_are_found(backends: str, force_64_bits: bool) -> None:
    index, text = indexed("runs of N", force_64_bits), text_of(TEXTS["runs of N"])
    backend, largest = open_backend(backends), np.iinfo(index.suffixes.dtype).max
    for rank in (0, 1, len(index.suffixes) // 2, len(index.suffixes) - 1):
        doubled = int(index.suffixes[rank - 1])
        for place in (text.index(BARRIER), len(text) - 1, len(text), len(text) + 100, largest, doubled):
            spoilt = index.suffixes.copy()
            spoilt[rank] = place
            found = find_disorder(index, spoilt, backend)
            assert found is not None
            assert found <= max(rank, len(index.suffixes) - 1 if place == doubled else rank)


def test_disorder_after_a_long_common_prefix_is_found(backends: str) -> None:
    repeat = random_bases(random.Random(4), 5_000)
    index, backend = index_of([repeat + "A", repeat + "C"]), open_backend(backends)
    ranks = {place: rank for rank, place in enumerate(index.suffixes.tolist())}
    for offset in (0, 1, 63, 64, 65, 4_000, 4_980):
        first, second = ranks[offset], ranks[5_002 + offset]
        assert second == first + 1
        spoilt = index.suffixes.copy()
        spoilt[[first, second]] = spoilt[[second, first]]
        assert find_disorder(index, spoilt, backend) is not None


def test_order_of_a_megabase_of_one_letter_is_checked(backends: str) -> None:
    index = index_of(["A" * 1_000_000])
    assert find_disorder(index, index.suffixes, open_backend(backends)) is None


def test_check_names_a_rank() -> None:
    index = indexed("random", False)
    spoilt = index.suffixes.copy()
    spoilt[[100, 300]] = spoilt[[300, 100]]
    with pytest.raises(IndexFolderError, match=r"suffix_array is out of order at rank \d+"):
        Index(index.reference, spoilt, index.prefix_table, index.table_bases, None, "ref.fa").check(open_backend("cpu"))
