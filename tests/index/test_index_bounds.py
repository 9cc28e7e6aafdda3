"""Arrays that would lead a kernel out of bounds are rejected even if checksums match; harmless changes are not."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import index_of, random_bases, with_table, write_folder

from readmap.backend import open_backend
from readmap.errors import IndexFolderError
from readmap.index import folder
from readmap.index.device import IndexStructure
from readmap.index.index import Index
from readmap.index.reference import LAST_BARRIER_END

CONTIGS = {"one": random_bases(random.Random(1), 9000, "ACGTACGTN"), "two": "R" + "ACCGT" * 1200}

Arrays = dict[str, np.ndarray[Any, Any]]
Change = Callable[[Arrays], object]


@pytest.fixture(scope="module", params=[False, True], ids=["32 bits", "64 bits"])
def index(request: pytest.FixtureRequest) -> Index:
    return index_of(CONTIGS, request.param, "both")


def stored(index: Index, path: Path, change: Change, facts: dict[str, Any] | None = None) -> Path:
    """Write an index folder with changed arrays and matching checksums."""
    index.write(path / "right.readmap")
    found = folder.read(path / "right.readmap")
    arrays = {name: np.array(array) for name, array in found.arrays.arrays.items()}
    change(arrays)
    contigs = [[contig.name, contig.length, contig.md5] for contig in found.contigs]
    known = {"source": "x", "table_bases": found.table_bases, "contigs": contigs} | (facts or {})
    write_folder(folder.KIND, path / "x.readmap", known, arrays)
    return path / "x.readmap"


def put(name: str, place: int | tuple[int, int], value: int) -> Change:
    return lambda arrays: arrays[name].__setitem__(place, value)


def replaced(name: str, change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Change:
    return lambda arrays: arrays.update({name: change(arrays[name])})


LENGTH = sum(len(bases) + 1 for bases in CONTIGS.values())
WRONG_SHAPES = {
    "contig_starts.npy does not increase from 0": put("contig_starts", 0, 1),
    "contig_starts.npy contradicts the contigs' lengths": put("contig_starts", 1, 9002),
    r"contig_starts.npy holds int32 \[3\], expected int64 \[3\]": replaced(
        "contig_starts", lambda a: a.astype(np.int32)
    ),
    r"words.npy holds uint64 \[98\d\], expected uint64": replaced("words", lambda a: a[:-1]),
    r"words.npy holds int64 \[98\d\], expected uint64": replaced("words", lambda a: a.view(np.int64)),
    r"barrier_blocks.npy holds uint64 \[1, 8\], expected uint64 \[8\]": replaced(
        "barrier_blocks", lambda a: a.reshape(1, -1)
    ),
    r"barrier_ends.npy holds int64 \[\d+\], expected int64": replaced("barrier_ends", lambda a: a[:-1]),
    r"barrier_starts.npy holds float64 \[\d+\], expected int64": replaced(
        "barrier_starts", lambda a: a.view(np.float64)
    ),
    "barrier_starts.npy has intervals that are empty or overlap": put("barrier_starts", 1, 0),
    "barrier_starts.npy has intervals that are empty or overlap ": put("barrier_starts", 0, -1),
    "barrier_ends.npy does not end with a barrier after": put("barrier_ends", -1, LAST_BARRIER_END - 1),
    "barrier_letters.npy has 0 at other positions than those between contigs": put("barrier_letters", 0, 0),
    "barrier_letters.npy has a letter other than an ambiguous base": put("barrier_letters", 0, ord("\n")),
    "barrier_letters.npy has a letter other than an ambiguous base ": put("barrier_letters", 0, ord("A")),
    r"suffix_array.npy holds uint\d+ \[\d+\], expected uint32 or uint64": replaced("suffix_array", lambda a: a[1:]),
    r"suffix_array.npy holds uint8 \[\d+\], expected uint32 or uint64": replaced(
        "suffix_array", lambda a: a.astype(np.uint8)
    ),
    r"prefix_table.npy holds uint\d+ \[\d+\], expected": replaced("prefix_table", lambda a: a[:-1]),
    r"prefix_table.npy holds uint\d\d \[16385\], expected uint\d\d \[16385\]": replaced(
        "prefix_table", lambda a: a.astype(np.uint64 if a.itemsize == 4 else np.uint32)
    ),
    r"edges.npy holds uint32 \[\d+, 4\], expected uint32": replaced("edges", lambda a: a[:-1]),
    r"edges.npy holds uint32 \[4, \d+\], expected uint32": replaced("edges", lambda a: np.ascontiguousarray(a.T)),
    r"edges.npy holds uint32 \[0, 4\], expected uint32 \[4, 4\]": replaced("edges", lambda a: a[:0]),
}


@pytest.mark.parametrize("message", WRONG_SHAPES)
def test_open_rejects(index: Index, tmp_path: Path, message: str) -> None:
    path = stored(index, tmp_path, WRONG_SHAPES[message])
    with pytest.raises(IndexFolderError, match=rf"x\.readmap: {message.strip()}.*; build the index again"):
        Index.open(path, check=False)


WRONG_ELEMENTS: dict[str, tuple[str, int, Change]] = {
    "a place behind the reference": ("suffix_array", 4100, put("suffix_array", 4100, LENGTH)),
    "the last place": ("suffix_array", -1, put("suffix_array", -1, 2**32 - 1)),
    "a table that falls": ("prefix_table", 100, put("prefix_table", 99, 14_000)),
    "a table that begins late": ("prefix_table", 0, put("prefix_table", 0, 1)),
    "a table that ends late": ("prefix_table", -1, put("prefix_table", -1, 2**32 - 1)),
    "an edge behind the reference": ("edges", 9, put("edges", (9, 0), LENGTH)),
    "an edge's length": ("edges", 9, put("edges", (9, 1), 2**32 - 1)),
    "a node that is not there": ("edges", 9, put("edges", (9, 2), 2**31)),
    "a rank behind the array": ("edges", -1, put("edges", (-1, 3), LENGTH)),
    "a bit too many": (
        "barrier_blocks",
        2,
        lambda arrays: np.bitwise_xor.at(arrays["barrier_blocks"], 2, np.uint64(2)),
    ),
    "a bit too few": ("barrier_blocks", 0, put("barrier_blocks", 0, 0)),
}


@pytest.mark.parametrize("name", WRONG_ELEMENTS)
def test_load_rejects(backends: str, index: Index, tmp_path: Path, name: str) -> None:
    array, element, change = WRONG_ELEMENTS[name]
    path, backend = stored(index, tmp_path, change), open_backend(backends)
    element %= len(np.load(path / f"{array}.npy"))
    with pytest.raises(IndexFolderError, match=rf"{array}\.npy has an invalid element {element:,};"):
        Index.open(path).to_device(backend, IndexStructure.BOTH)
    with pytest.raises(IndexFolderError, match=rf"{array}\.npy has an invalid element {element:,};"):
        Index.open(path).check(backend)


ORDERS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "from behind": lambda order: order[::-1].copy(),
    "rotated": lambda order: np.roll(order, 5000),
    "shuffled": np.random.default_rng(5).permutation,
    "any places": lambda order: np.random.default_rng(6).integers(0, LENGTH, len(order)).astype(order.dtype),
}


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("bases", [8, 11])
def test_table_rejects_unsorted_suffixes(
    backends: str, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, bases: int
) -> None:
    path, backend = stored(index, tmp_path, replaced("suffix_array", ORDERS[name])), open_backend(backends)
    with pytest.raises(IndexFolderError, match=r"^suffix_array is out of order at rank \d+$"):
        with_table(Index.open(path), bases, backend, monkeypatch)


def test_table_accepts_sorted_first_bases(
    backends: str, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stored table, which is not read, may have any contents."""

    def change(arrays: Arrays) -> None:
        arrays["suffix_array"][:] = arrays["suffix_array"][5000]
        arrays["prefix_table"] = arrays["prefix_table"][::-1].copy()

    backend = open_backend(backends)
    made = with_table(Index.open(stored(index, tmp_path, change)), 8, backend, monkeypatch)
    table, count = backend.to_host(made.prefix_table), len(index.suffixes)
    assert sorted(table) == table.tolist()
    assert {*table.tolist()} == {0, count}


def test_positions_are_checked_before_building_a_table(
    backends: str, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = int(np.iinfo(index.suffixes.dtype).max)
    path = stored(index, tmp_path, replaced("suffix_array", lambda order: np.full_like(order, largest)))
    with pytest.raises(IndexFolderError, match=r"suffix_array\.npy has an invalid element 0;"):
        with_table(Index.open(path), 9, open_backend(backends), monkeypatch)


def test_empty_edge_to_inner_node(backends: str, index: Index, tmp_path: Path) -> None:
    """A walk over such edges would not end."""
    inner = int(np.flatnonzero(index.edges[:, 2])[3])  # type: ignore[index]
    path = stored(index, tmp_path, put("edges", (inner, 1), 0))
    with pytest.raises(IndexFolderError, match=rf"edges\.npy has an invalid element {inner}"):
        Index.open(path).to_device(open_backend(backends), IndexStructure.TREE)


def test_unloaded_arrays_are_not_checked(index: Index, tmp_path: Path) -> None:
    path, backend = stored(index, tmp_path, put("edges", (9, 2), 2**31)), open_backend("cpu")
    Index.open(path).to_device(backend, IndexStructure.ARRAY)
    with pytest.raises(IndexFolderError, match=r"edges\.npy"):
        Index.open(path).to_device(backend, IndexStructure.TREE)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"table_bases": 13}, "a prefix table of 13 bases"),
        ({"table_bases": 0}, "a prefix table of 0 bases"),
        ({"contigs": []}, "no contigs, or two of one name"),
        ({"contigs": [["a", 9000, "0" * 32], ["a", 6001, "0" * 32]]}, "no contigs, or two of one name"),
        ({"contigs": [["a", 9000, "0" * 32], ["b\n", 6001, "0" * 32]]}, r"'b\\n' is not a valid contig name"),
        ({"contigs": [["a", 9000, "0" * 32], ["b", 6001, "x"]]}, "'x' is not an MD5"),
        ({"contigs": [["a", 9000], ["b", 6001]]}, "not enough values"),
        ({"contigs": [["a", float("inf"), "0" * 32], ["b", 6001, "0" * 32]]}, "infinity"),
    ],
)
def test_manifest_rejects(index: Index, tmp_path: Path, facts: dict[str, Any], message: str) -> None:
    path = stored(index, tmp_path, lambda arrays: None, facts)
    with pytest.raises(IndexFolderError, match=rf"manifest\.json is damaged \(.*{message}.*\); build the index again"):
        Index.open(path)
