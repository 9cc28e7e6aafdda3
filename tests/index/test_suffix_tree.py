"""The LCP array and the suffix tree compared with plain implementations, and the check for wrong edges."""

import dataclasses
import random

import numpy as np
import pytest
from examples import TEXTS, fibonacci, held, index_of, indexed, random_bases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles.alignment import BARRIER, Node, suffix_tree, text_of

from readmap.backend import Backend, open_backend
from readmap.errors import IndexFolderError, UsageError
from readmap.index.index import Index
from readmap.index.suffix_tree import (
    Edges,
    build_lcp,
    build_suffix_tree,
    build_tree_entries,
    first_mismatched_node,
    refuse_large,
)

DRAW = random.Random(81)
REPEAT = random_bases(DRAW, 1_300)

# More than 32 * 32 suffixes, so that the minima have at least three levels, and prefixes of that length.
LARGE_TEXTS = {
    "two letters": [random_bases(DRAW, 3_000, "CG")],
    "fibonacci": [fibonacci(2_600)],
    "one letter": ["C" * 1_500],
    "one letter and its end": ["C" * 1_100 + "T" + "C" * 400],
    "repeats within repeats": [REPEAT + "A" + REPEAT[700:] + REPEAT, "N" + REPEAT[650:] + "T", REPEAT[:900]],
    "contigs that end alike": [random_bases(DRAW, 1 + number % 9) + REPEAT[-40:] for number in range(60)],
    "the same contig": [REPEAT[:35]] * 80,
    "exactly 1,024 suffixes": [random_bases(DRAW, 1_024)],
    "1,025 suffixes": [random_bases(DRAW, 1_000), random_bases(DRAW, 25)],
}


def naive_prefixes(text: str, order: list[int]) -> list[int]:
    """Return the common prefix of each suffix and its predecessor."""
    found = []
    for rank, place in enumerate(order):
        shared, other = 0, order[rank - 1]
        while rank and text[place + shared] == text[other + shared] != BARRIER:
            shared += 1
        found.append(shared)
    return found


def lcp_array(index: Index, backend: Backend) -> NDArray[np.uint32]:
    """Return the LCP array from which the tree is built."""
    reference, suffixes = index.reference.to_device(backend), backend.to_device(index.suffixes)
    prefixes = build_lcp(reference, index.reference.length, suffixes, backend)
    return backend.to_host(prefixes.values)[: len(index.suffixes)]


def check_tree(text: str, index: Index, backend: Backend) -> tuple[Edges, dict[Node, int]]:
    """Assert that the tree has exactly the oracle's nodes, with the same four edges each.

    Returns the edges, and the index of each of the oracle's nodes.
    """
    order = index.suffixes.tolist()
    prefixes = lcp_array(index, backend)
    assert prefixes.dtype == np.uint32
    assert prefixes.tolist() == naive_prefixes(text, order)
    edges = backend.to_host(build_suffix_tree(*held(index, backend), backend))
    assert (edges.dtype, edges.shape) == (np.uint32, (len(edges), 4))
    expected = suffix_tree(text, order)
    assert len(edges) == 4 * len(expected)
    built = edges.reshape(-1, 4, 4).tolist()
    root = (0, len(order), 0)
    numbers, todo = {root: 0}, [root]
    while todo:
        node = todo.pop()
        for edge, (start, length, left, below) in zip(built[numbers[node]], expected[node], strict=True):
            assert [edge[0], edge[1], edge[3]] == [start, length, left], node
            assert (edge[2] == 0) == (below is None), node
            if below is not None:
                numbers[below] = edge[2]
                todo.append(below)
    assert sorted(numbers.values()) == list(range(len(built)))
    return edges, numbers


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", TEXTS)
def test_tree(backends: str, name: str, force_64_bits: bool) -> None:
    index = indexed(name, force_64_bits)
    edges, _ = check_tree(text_of(TEXTS[name]), index, open_backend(backends))
    assert np.array_equal(edges, index.edges)


@pytest.mark.parametrize("name", LARGE_TEXTS)
def test_tree_of_more_suffixes(backends: str, name: str) -> None:
    contigs = LARGE_TEXTS[name]
    check_tree(text_of(contigs), index_of(contigs), open_backend(backends))


@settings(derandomize=True, max_examples=60, deadline=None)
@given(contigs=st.lists(st.text("ACGTN", min_size=1, max_size=40), min_size=1, max_size=8))
def test_tree_of_any_contigs(backends: str, contigs: list[str]) -> None:
    check_tree(text_of(contigs), index_of(contigs), open_backend(backends))


@settings(derandomize=True, max_examples=40, deadline=None)
@given(contigs=st.lists(st.text("AC", min_size=1, max_size=90), min_size=1, max_size=4))
def test_tree_of_two_letters(backends: str, contigs: list[str]) -> None:
    check_tree(text_of(contigs), index_of(contigs), open_backend(backends))


def test_same_tree_on_any_threads(backends: str) -> None:
    """The text has more suffixes than a slice of positions, a block of ranks and a call of the CPU."""
    generator = random.Random(82)
    contigs = [random_bases(generator, 40_000), fibonacci(5_000), random_bases(generator, 3_000, "AT")]
    index = index_of(contigs, structure="tree")
    backend = open_backend(backends, 4)
    assert np.array_equal(backend.to_host(build_suffix_tree(*held(index, backend), backend)), index.edges)
    index.check(open_backend(backends))


def test_homopolymer_of_a_megabase(backends: str) -> None:
    """A node for every length, each the parent of the next: the deepest possible tree."""
    count = 1_000_000
    index = index_of(["A" * count])
    backend = open_backend(backends)
    assert np.array_equal(lcp_array(index, backend), np.arange(count))
    edges = backend.to_host(build_suffix_tree(*held(index, backend), backend)).reshape(-1, 4, 4)
    assert len(edges) == count
    depths = np.full(count, -1)
    node = 0
    destinations = edges[:, 0, 2].tolist()
    for depth in range(count):
        depths[node] = depth
        node = destinations[node]
    assert node == 0
    assert np.array_equal(np.sort(depths), np.arange(count))
    # A suffix of n bases has rank n - 1; the suffixes longer than a node of depth d have rank d or more.
    assert np.array_equal(edges[:, 0, [0, 1, 3]], np.stack([np.full(count, count - 1), np.ones(count), depths], 1))
    assert not edges[:, 1:, :3].any()
    assert (edges[:, 1:, 3] == count).all()
    assert first_mismatched_node(*held(index, backend), edges.reshape(-1, 4), backend) is None


def test_size_of_the_tree() -> None:
    """At most one node per base, plus one."""
    for name in TEXTS:
        index = indexed(name)
        assert 1 <= index.nodes <= len(index.suffixes) + 1
        assert index.edges is not None
        assert len(index.edges) == 4 * index.nodes


def test_references_too_large_for_a_tree() -> None:
    refuse_large(2**32 - 1)
    with pytest.raises(
        UsageError, match="a suffix tree supports fewer than 2\\^32 bases, the reference has 4,294,967,296"
    ):
        refuse_large(2**32)


@pytest.mark.parametrize("bases", [0, 1, 2, 5])
@pytest.mark.parametrize("name", TEXTS)
def test_entries(backends: str, name: str, bases: int) -> None:
    """For all codes: the deepest node on the walk along the first bases, and the bound of its ranks."""
    index, backend = indexed(name), open_backend(backends)
    edges, numbers = check_tree(text_of(TEXTS[name]), index, backend)
    tree = suffix_tree(text_of(TEXTS[name]), index.suffixes.tolist())
    entries = backend.to_host(build_tree_entries(backend.to_device(edges), bases, backend))
    assert (entries.dtype, entries.shape) == (np.int64, (4**bases, 2))
    for code, (bound, node_and_depth) in enumerate(entries.tolist()):
        digits = [code >> 2 * (bases - 1 - i) & 3 for i in range(bases)]
        node: Node | None = (0, len(index.suffixes), 0)
        deepest = node
        while node is not None and node[2] <= bases:
            deepest = node
            node = tree[node][digits[node[2]]][3] if node[2] < bases else None
        _, high, depth = deepest
        assert (node_and_depth & (2**32 - 1), node_and_depth >> 32) == (numbers[deepest], depth)
        assert (len(index.suffixes) if bound < 0 else edges[bound, 3]) == high


# Damaged trees.


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", TEXTS)
def test_no_error(backends: str, name: str, force_64_bits: bool) -> None:
    index, backend = indexed(name, force_64_bits), open_backend(backends)
    assert index.edges is not None
    assert first_mismatched_node(*held(index, backend), index.edges, backend) is None
    index.check(backend)


FIELDS = ("start", "length", "destination", "left")

SPOILT = {
    "random": [random_bases(random.Random(83), 60)],
    "deep": [REPEAT[:30] + "C" + REPEAT[:30] + "T" + REPEAT[:30], REPEAT[10:30]],
    "one letter": ["A" * 25],
    "runs of N": ["AC" * 12 + "N" + "AC" * 6, "A", "C", "ACAC"],
    "copies": [random_bases(random.Random(84), 12)] * 4 + ["G" * 8],
}


def kind_of(edge: list[int]) -> str:
    return "fake" if edge[1] == 0 else "leaf" if edge[2] == 0 else "inner"


@pytest.mark.parametrize("kind", ["inner", "leaf", "fake"])
@pytest.mark.parametrize("name", SPOILT)
def test_planted_errors_are_found(backends: str, name: str, kind: str) -> None:
    """Every field of every edge is changed, except the start of an empty edge, which is not read.

    The error is reported at the node of the edge or at its parent, because a node's depth and bounds follow from its
    edges.
    """
    index, backend = index_of(SPOILT[name], structure="tree"), open_backend(backends)
    edges = index.edges
    assert edges is not None
    above = {int(edge[2]): number // 4 for number, edge in enumerate(edges) if edge[2]}
    made, missed, generator = 0, [], random.Random(f"{name}{kind}")
    for number, row in enumerate(edges.tolist()):
        for field, value in enumerate(row):
            if kind_of(row) != kind or (kind, FIELDS[field]) == ("fake", "start"):
                continue
            others = (value + 1, max(value - 1, 0), value + 7, 0, index.nodes, 2**32 - 1)
            other = generator.choice([other for other in others if other != value])
            spoilt = edges.copy()
            spoilt[number, field] = other
            found = first_mismatched_node(*held(index, backend), spoilt, backend)
            made += 1
            if found is None:
                missed.append(f"edge {number} {row}: {FIELDS[field]} {other}")
            assert found in (None, number // 4, above.get(number // 4))
    assert made
    assert not missed, f"{len(missed)} of {made} were not found: {'; '.join(missed[:5])}"


def test_smallest_wrong_node_is_reported(backends: str) -> None:
    index, backend = index_of([random_bases(random.Random(85), 5_000)], structure="tree"), open_backend(backends, 4)
    assert index.edges is not None
    spoilt = index.edges.copy()
    for node in range(index.nodes - 1, 0, -517):
        edge = 4 * node + int(np.flatnonzero(spoilt[4 * node : 4 * node + 4, 1])[0])
        spoilt[edge, 0] ^= 1 << 20
        found = first_mismatched_node(*held(index, backend), spoilt, backend)
        above = int(np.flatnonzero(index.edges[:, 2] == node)[0]) // 4
        assert found in (node, above)


def test_error_after_a_long_label_is_found(backends: str) -> None:
    repeat = random_bases(random.Random(86), 5_000)
    index = index_of([repeat + "A", repeat + "C" + repeat[:10]], structure="tree")
    backend = open_backend(backends)
    assert index.edges is not None
    lengths = index.edges[:, 1]
    number = int(np.flatnonzero((lengths > 4_000) & (index.edges[:, 2] != 0))[0])
    for change in (-1, 1, -64, -4_000):
        spoilt = index.edges.copy()
        spoilt[number, 1] = int(lengths[number]) + change
        assert first_mismatched_node(*held(index, backend), spoilt, backend) is not None


def test_check_names_the_node() -> None:
    index = indexed("random")
    assert index.edges is not None
    spoilt = index.edges.copy()
    spoilt[4 * 33 : 4 * 34, 0] += 1
    wrong, backend = dataclasses.replace(index, edges=spoilt), open_backend("cpu")
    found = first_mismatched_node(*held(index, backend), spoilt, backend)
    assert found is not None
    with pytest.raises(IndexFolderError, match=f"edges contradicts suffix_array at node {found}$"):
        wrong.check(open_backend("cpu"))
