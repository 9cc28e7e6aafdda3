"""Exact occurrences compared with a text search: by suffix array with and without table, and by suffix tree."""

import dataclasses
import functools
import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from examples import TEXTS, below, fibonacci, held, index_of, indexed, random_bases, substitute
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.alignment import clean, occurrences, reverse_complement, suffix_order, text_of

from readmap import Aligner
from readmap.backend import Backend, open_backend
from readmap.errors import BackendError, DataError, IndexFolderError, UsageError
from readmap.formats.wording import format_bytes
from readmap.index import suffix_array
from readmap.index.device import DeviceIndex, IndexStructure
from readmap.index.index import Index
from readmap.index.occurrences import Location, Locations, count_occurrences, find_occurrences
from readmap.index.suffix_array import build_prefix_table
from readmap.index.suffix_tree import build_tree_entries
from readmap.reads.packing import pack_patterns
from readmap.reads.parsing import reads_from_sequences
from readmap.strand import Strand

LENGTHS = (1, 2, 3, 5, 6, 7, 12, 13, 31, 32, 33, 63, 64, 65, 96, 97, 128, 200)


def queries_like(contigs: Sequence[str], generator: random.Random) -> list[str]:
    """Return queries that occur or nearly occur in the contigs, on both strands: contig ends, neighbours of N, all
    short words.
    """
    text = "N".join(clean(contig) for contig in contigs)
    closed = text.replace("N", "")  # as if contigs had no ends and no ambiguous bases
    filled = text.replace("N", "A")  # A instead of N, as in packed words
    queries = ["", "N", *"ACGT", *(a + b for a in "ACGT" for b in "ACGT"), "acgu", "U", "R", "ACNGT"]
    some = sorted({below(generator, len(contigs)) for _ in range(12)})
    for contig in [clean(contigs[number]) for number in some]:
        queries += [contig, contig + "A", "T" + contig, contig[1:], contig[:-1]]
        queries += [contig[:length] for length in LENGTHS] + [contig[-length:] for length in LENGTHS]
    ends = [i for i in range(len(text)) if text[i] == "N" and (text[i - 1 : i] != "N" or text[i + 1 : i + 2] != "N")]
    for end in [ends[below(generator, len(ends))] for _ in range(12 if ends else 0)]:
        for length in LENGTHS:
            queries += [text[max(end - length, 0) : end], text[end + 1 : end + 1 + length], text[end : end + length]]
            queries += [filled[max(end - length, 0) : end + 1], filled[end : end + length]]
    for length in LENGTHS * 3:
        start = below(generator, max(1, len(closed) - length))
        piece = closed[start : start + length]
        queries += [piece, substitute(generator, piece, 1), piece.lower(), piece + "G", "C" + piece]
    queries += [letter * length for letter in "ACGT" for length in (7, 40, 399, 400, 401)]
    queries += [fibonacci(length, letters) for length in (30, 89, 100) for letters in ("AC", "GT", "TG")]
    queries += [random_bases(generator, length) for length in LENGTHS]
    queries += [half + reverse_complement(half) for half in (random_bases(generator, n) for n in (1, 2, 3, 16, 33))]
    queries += ["A" * 10_000, "T" * 9_999, (text * 10_000)[:10_000], (closed * 10_000)[:10_000], filled[-300:] * 30]
    cut = [query[:10_000] for query in queries]
    return [query if number % 2 else reverse_complement(query) for number, query in enumerate(cut)]


@functools.cache
def expected_ranges(name: str) -> tuple[list[str], list[list[tuple[int, int]]]]:
    """Return queries, and for each strand the (first, count) of the sorted suffixes that start with each query."""
    generator = random.Random(f"queries for {name}")
    text, queries = text_of(TEXTS[name]), queries_like(TEXTS[name], generator)
    queries = list(dict.fromkeys(queries))
    shown = [text[place:] for place in suffix_order(text)]
    strands = []
    for turned in (clean, reverse_complement):
        ranges = []
        for query in queries:
            wanted = turned(query)
            ranks = [rank for rank, suffix in enumerate(shown) if suffix.startswith(wanted)]
            if not wanted or "N" in wanted or not ranks:
                ranges.append((0, 0))
                continue
            assert ranks == list(range(ranks[0], ranks[0] + len(ranks)))
            ranges.append((ranks[0], len(ranks)))
        strands.append(ranges)
    return queries, strands


def found_ranges(
    queries: Sequence[str], index: DeviceIndex, strand: Strand, structure: IndexStructure, backend: Backend
) -> list[list[tuple[int, int]]]:
    """Return for each searched strand the first rank and the count of each query."""
    reads, _ = reads_from_sequences(queries, None, backend)
    patterns = pack_patterns(reads.bytes, reads.sequence_starts, reads.lengths, backend)
    found = find_occurrences(patterns, index, strand, structure, backend)
    assert found.ranks.dtype == found.counts.dtype == index.suffixes.dtype
    ranks, counts, slots = (backend.to_host(array) for array in (found.ranks, found.counts, patterns.slot_of))
    assert ranks.shape == counts.shape == (strand.rows, len(queries))
    totals = backend.to_host(count_occurrences(found, backend))
    assert totals.dtype == np.int64
    assert np.array_equal(totals, counts.sum(axis=0)[slots])
    return [
        list(zip(ranks[row][slots].tolist(), counts[row][slots].tolist(), strict=True)) for row in range(strand.rows)
    ]


def searches(index: Index, backend: Backend) -> list[tuple[DeviceIndex, IndexStructure]]:
    """Return all ways to search."""
    return [
        (index.to_device(backend), IndexStructure.ARRAY),
        (index.to_device(backend, prefix_table=False), IndexStructure.ARRAY),
        (index.to_device(backend, IndexStructure.TREE), IndexStructure.TREE),
        (index.to_device(backend, IndexStructure.TREE, prefix_table=False), IndexStructure.TREE),
    ]


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", TEXTS)
def test_ranges(backends: str, name: str, force_64_bits: bool) -> None:
    backend = open_backend(backends)
    queries, expected = expected_ranges(name)
    for index, structure in searches(indexed(name, force_64_bits), backend):
        assert found_ranges(queries, index, Strand.BOTH, structure, backend) == expected
        assert found_ranges(queries, index, Strand.FORWARD, structure, backend) == expected[:1]
        assert found_ranges(queries, index, Strand.REVERSE, structure, backend) == expected[1:]


@pytest.mark.parametrize("lanes", [1, 4, 32])
def test_ranges_do_not_depend_on_the_lanes(backends: str, lanes: int) -> None:
    backend = open_backend(backends, 4)
    backend.warp_width = lanes
    queries, expected = expected_ranges("runs of N")
    for index, structure in searches(indexed("runs of N"), backend):
        assert found_ranges(queries, index, Strand.BOTH, structure, backend) == expected
        for query, *one in list(zip(queries, *expected, strict=True))[::17]:
            assert found_ranges([query], index, Strand.BOTH, structure, backend) == [[found] for found in one]


@pytest.mark.parametrize("name", ["random", "one letter", "fibonacci, contigs", "runs of N"])
@pytest.mark.parametrize("bases", [1, 2, 3, 8, 10])
def test_ranges_do_not_depend_on_the_tables(backends: str, name: str, bases: int) -> None:
    """Tables may resolve more bases than most queries and leaves have."""
    backend, index = open_backend(backends), indexed(name)
    queries, expected = expected_ranges(name)
    reference, _, order = held(index, backend)
    table = build_prefix_table(reference, order, bases, backend)
    array = dataclasses.replace(index.to_device(backend), prefix_table=table, table_bases=bases)
    assert found_ranges(queries, array, Strand.BOTH, IndexStructure.ARRAY, backend) == expected
    tree = index.to_device(backend, IndexStructure.TREE)
    tree = dataclasses.replace(tree, entries=build_tree_entries(tree.edges, bases, backend), entry_bases=bases)
    assert found_ranges(queries, tree, Strand.BOTH, IndexStructure.TREE, backend) == expected


def places_of(contigs: Sequence[str], queries: Sequence[str]) -> list[list[tuple[int, int, int]]]:
    return [occurrences(contigs, query) for query in queries]


def by_query(places: Locations) -> list[list[tuple[int, int, int]]]:
    """Return (contig, start, strand) of each query's locations."""
    rows = list(zip(places.contigs.tolist(), places.starts.tolist(), places.strands.tolist(), strict=True))
    return [rows[begin:end] for begin, end in itertools.pairwise(places.offsets.tolist())]


def check_api(index: Index, contigs: Sequence[str], queries: Sequence[str], device: str, **options: Any) -> None:
    expected = places_of(contigs, queries)
    counts = index.count(queries, device=device, **options)
    assert counts.dtype == np.int64
    assert counts.tolist() == [len(places) for places in expected]
    places = index.locate(queries, device=device, **options)
    assert by_query(places) == expected
    assert places.totals.tolist() == counts.tolist()
    lengths = np.array([len(query) for query in queries])
    assert np.array_equal(places.ends - places.starts, np.repeat(lengths, counts))


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    contigs=st.lists(st.text("ACGTN", min_size=1, max_size=40), min_size=1, max_size=8),
    queries=st.lists(st.text("ACGTN", max_size=12), max_size=10),
    pieces=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 45)), max_size=10),
)
def test_any_contigs_and_queries(
    backends: str, contigs: list[str], queries: list[str], pieces: list[tuple[int, int]]
) -> None:
    closed = "".join(contigs)
    queries += [closed[start % len(closed) :][:length] for start, length in pieces]
    index = index_of(contigs, structure="both")
    for structure in ("array", "tree"):
        check_api(index, contigs, queries, backends, structure=structure, threads=1)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    contigs=st.lists(st.text("AT", min_size=1, max_size=90), min_size=1, max_size=3),
    queries=st.lists(st.text("AT", max_size=9), max_size=10),
)
def test_palindromes(backends: str, contigs: list[str], queries: list[str]) -> None:
    """Texts of A and T are full of palindromes."""
    index = index_of(contigs, structure="both")
    for structure in ("array", "tree"):
        check_api(index, contigs, queries, backends, structure=structure, threads=1)


def test_query_lengths(backends: str) -> None:
    """Each query is found where it is from, and not with one changed base."""
    generator = random.Random(101)
    contigs = [random_bases(generator, 12_000), "N" + random_bases(generator, 11_000), random_bases(generator, 40)]
    lengths = [*range(1, 140), *range(140, 1_000, 41), 1_023, 1_024, 4_095, 9_967, 9_968, 9_999, 10_000]
    index = index_of(contigs, structure="both")
    queries, drawn = [], []
    for length in lengths:
        number = below(generator, 2)
        start = number + below(generator, len(contigs[number]) - length - number)
        piece = contigs[number][start : start + length]
        strand = 1 - 2 * below(generator, 2)
        queries.append(piece if strand == 1 else reverse_complement(piece))
        drawn.append((number, start, strand))
    changed = [substitute(generator, query, 1) for query in queries]
    for structure in ("array", "tree"):
        check_api(index, contigs, queries[:10], backends, structure=structure)
        found = by_query(index.locate(queries, structure=structure, device=backends))
        assert all(place in places for place, places in zip(drawn, found, strict=True))
        assert found[20:] == [[place] for place in drawn[20:]]
        assert not index.count(changed, structure=structure, device=backends)[20:].any()


def test_many_occurrences(backends: str) -> None:
    """In a text of one letter all occurrences are found, in suffix array order: those with the shorter rest first."""
    count = 30_000
    index = index_of(["A" * count, "TTTT"], structure="both")
    for structure in ("array", "tree"):
        options: dict[str, Any] = {"structure": structure, "device": backends}
        lengths = [1, 2, 11, 12, 13, 5_000, 10_000]
        more = [4, 3, 0, 0, 0, 0, 0]
        queries = ["A" * length for length in lengths]
        expected = [count - length + 1 + other for length, other in zip(lengths, more, strict=True)]
        assert index.count(queries, **options).tolist() == expected
        places = index.locate(["A"], **options)
        assert places.starts.tolist() == [*range(count - 1, -1, -1), 3, 2, 1, 0]
        assert places.strands.tolist() == [1] * count + [-1] * 4


# The API.

CONTIGS = {"one": "ACGTACGTTTGACN" + "GATTACA" * 3, "two": "CCGATTACAR", "three": "AAAAAAAA"}


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of(CONTIGS, structure="both")


@pytest.fixture(params=["array", "tree"])
def options(request: pytest.FixtureRequest, backends: str) -> dict[str, Any]:
    return {"structure": request.param, "device": backends}


def test_locations(index: Index, options: dict[str, Any]) -> None:
    """Forward locations come first; on each strand the order is that of the following bases, with an end first."""
    assert index.count(["GATTACA", "TGTAATC", "ACGT", "AACC", "A" * 8], **options).tolist() == [4, 4, 4, 0, 1]
    places = index.locate(["GATTACA", "TTT", "ACGT", "AACC", "TGTAATCG"], **options)
    assert len(places) == 16
    assert places.totals.tolist() == [4, 7, 4, 0, 1]
    assert places.offsets.tolist() == [0, 4, 11, 15, 15, 16]
    found = list(places)
    rows = [(0, "one", 28, 35, 1), (0, "two", 2, 9, 1), (0, "one", 21, 28, 1), (0, "one", 14, 21, 1)]
    assert found[:4] == [Location(*row) for row in rows]
    rows = [(2, "one", 0, 4, 1), (2, "one", 4, 8, 1), (2, "one", 0, 4, -1), (2, "one", 4, 8, -1), (4, "two", 1, 9, -1)]
    assert found[11:] == [Location(*row) for row in rows]
    for one in found:
        assert {type(value) for value in dataclasses.astuple(one)} == {int, str}


def test_types(index: Index, options: dict[str, Any]) -> None:
    places = index.locate(["GATTACA", ""], **options)
    dtypes = {"totals": np.int64, "offsets": np.int64, "contigs": np.int32, "starts": np.int64, "ends": np.int64}
    assert all(getattr(places, name).dtype == dtype for name, dtype in dtypes.items())
    assert places.strands.dtype == np.int8
    assert [contig.name for contig in places.names] == list(CONTIGS)
    assert index.count([""], **options).dtype == np.int64


@pytest.mark.parametrize("most", [0, 1, 2, 3, 4, 5, 1_000, None])
def test_max_per_query(index: Index, options: dict[str, Any], most: int | None) -> None:
    """Returns the first locations of each query; totals are unaffected."""
    queries = ["GATTACA", "ACGT", "A", "CC", "", "N", "AAAAAAAA"]
    expected = places_of(list(CONTIGS.values()), queries)
    places = index.locate(queries, max_per_query=most, **options)
    assert by_query(places) == [found[:most] for found in expected]
    assert places.totals.tolist() == [len(found) for found in expected]


@pytest.mark.parametrize("strand", ["both", "forward", "reverse"])
def test_strands(index: Index, options: dict[str, Any], strand: str) -> None:
    queries = ["GATTACA", "TGTAATC", "ACGT", "A", "T", "AT", "CC", "N"]
    contigs = list(CONTIGS.values())
    strands = {"both": (1, -1), "forward": (1,), "reverse": (-1,)}[strand]
    expected = [occurrences(contigs, query, strands) for query in queries]
    for given_strand in (strand, Strand(strand)):
        assert by_query(index.locate(queries, given_strand, **options)) == expected
        assert index.count(queries, given_strand, **options).tolist() == [len(found) for found in expected]
        capped = by_query(index.locate(queries, given_strand, max_per_query=1, **options))
        assert capped == [found[:1] for found in expected]


def test_sequence_types(index: Index, options: dict[str, Any]) -> None:
    """Text, bytes, an iterator, lower case and U."""
    queries = ["GATTACA", "acgt", "aaaaa"]
    expected = [4, 4, 4]
    assert index.count(queries, **options).tolist() == expected
    assert index.count([query.encode() for query in queries], **options).tolist() == expected
    assert index.count(iter(queries), **options).tolist() == expected
    assert index.count((query for query in queries), **options).tolist() == expected
    assert index.count([bytearray(b"GAUUACA"), "gauuaca"], **options).tolist() == [4, 4]  # type: ignore[list-item]


def test_no_queries(index: Index, options: dict[str, Any]) -> None:
    counts = index.count([], **options)
    assert (counts.dtype, counts.shape) == (np.int64, (0,))
    places = index.locate([], **options)
    assert len(places) == 0
    assert list(places) == []
    assert (places.totals.shape, places.offsets.tolist()) == ((0,), [0])


def test_queries_without_occurrences(index: Index, options: dict[str, Any]) -> None:
    """An empty query, an ambiguous base, a query longer than the contig, and matches interrupted by N or a contig's
    end.
    """
    queries = ["", "N", "GATTACAN", "NGATTACA", "GACNGATTACA", "GACAGATTACA", "GACGATTACA", "GATTACACCGATTACA"]
    queries += ["GATTACAR", "GATTACAA", "AAAAAAAAA", "A" * 10_000, "GATTACAAAAA", "R"]
    assert index.count(queries, **options).tolist() == [0] * len(queries)
    assert len(index.locate(queries, **options)) == 0


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        (["ACGT", "AC-T"], r"sequences, record 2 .*: expected a nucleotide at base 3, found '-'"),
        (["AC GT"], r"record 1 .*: expected a nucleotide at base 3, found ' '"),
        (["ACGT\n"], r"record 1 .*: expected a nucleotide at base 5"),
        (["ACGT", "A", b"A\rC"], r"record 3 .*: expected a nucleotide at base 2"),
        (["AC\u00e9T"], r"record 1 .*: expected a nucleotide at base 3"),
        (["A" * 10_001], r"record 1 .*: the read has 10001 bases; at most 10000 are supported"),
    ],
)
def test_bad_sequences(index: Index, options: dict[str, Any], sequences: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        index.count(sequences, **options)
    with pytest.raises(DataError, match=message):
        index.locate(sequences, **options)


def test_invalid_options(index: Index) -> None:
    with pytest.raises(UsageError, match="--device abacus"):
        index.count(["A"], device="abacus")
    with pytest.raises(ValueError, match="sideways"):
        index.count(["A"], "sideways")
    with pytest.raises(ValueError, match="trie"):
        index.locate(["A"], structure="trie")


# What an index holds.


def test_missing_structure(backends: str) -> None:
    array, tree = (index_of(["GATTACA"], structure=structure) for structure in ("array", "tree"))
    assert (array.nodes, array.edges) == (0, None)
    assert tree.nodes > 0
    assert tree.prefix_table is None
    missing = "the index has no suffix tree: build it again with --structure tree or --structure both"
    for search in (array.count, array.locate):
        with pytest.raises(IndexFolderError, match=missing):
            search(["A"], structure="tree", device=backends)
    missing = "the index has no prefix table: build it again with --structure array or --structure both"
    for search in (tree.count, tree.locate):
        with pytest.raises(IndexFolderError, match=missing):
            search(["A"], structure="array", device=backends)
    with pytest.raises(IndexFolderError, match=missing):
        Aligner(tree, device=backends)
    assert tree.count(["TTA", "A"], device=backends).tolist() == [1, 5]


def test_index_too_large_for_the_device(monkeypatch: pytest.MonkeyPatch, backends: str) -> None:
    """Arrays that are not wanted are not counted."""
    index, backend = indexed("random"), open_backend(backends)
    assert index.edges is not None
    assert index.prefix_table is not None
    held = index.reference.nbytes + index.suffixes.nbytes
    for structure, array in ((IndexStructure.ARRAY, index.prefix_table), (IndexStructure.TREE, index.edges)):
        free = held + array.nbytes + 20_000
        monkeypatch.setattr(backend, "memory", lambda free=free: (free, 2**40))
        index.to_device(backend, structure)
        free = held + array.nbytes - 1
        monkeypatch.setattr(backend, "memory", lambda free=free: (free, 2**40))
        with pytest.raises(BackendError, match=rf"the index needs .* of memory on .*, {format_bytes(free)} are free"):
            index.to_device(backend, structure)
    monkeypatch.setattr(backend, "memory", lambda: (held + index.prefix_table.nbytes + 20_000, 2**40))
    monkeypatch.setattr(suffix_array, "SUFFIXES_PER_ENTRY", 1e-9)
    monkeypatch.setattr(backend, "max_table_bases", 15)
    assert index.to_device(backend).table_bases == index.table_bases  # no memory for a larger table
    with pytest.raises(BackendError, match="the index needs"):
        index.to_device(backend, IndexStructure.BOTH)
