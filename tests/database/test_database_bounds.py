"""Test that inconsistent arrays of a database are rejected, although their checksums are valid."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import write_folder

import readmap
from readmap.backend import open_backend
from readmap.database import folder as database_folder
from readmap.database.database import Database
from readmap.errors import DatabaseFolderError
from readmap.formats.alphabets import Alphabet
from readmap.reads.sequences import Sequences

Arrays = dict[str, np.ndarray[Any, Any]]
Change = Callable[[Arrays], object]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a database of sequences of 5, 3, 0 and 9 letters."""
    letters = [np.frombuffer(text, np.uint8) for text in (b"MKVLA", b"WKV", b"", b"MKVLAWMKV")]
    given = Sequences.of([b"a first", b"b", b"c", b"d"], letters)
    Database.of(given, Alphabet.PROTEINS).write(tmp_path / "right.readmapdb")
    return tmp_path / "right.readmapdb"


def stored(path: Path, change: Change) -> Path:
    """Write the database with other arrays and their checksums."""
    arrays = {name: np.array(array) for name, array in database_folder.read(path)[2].arrays.items()}
    change(arrays)
    facts = {"source": "x", "molecule": "protein"}
    write_folder(database_folder.KIND, path.parent / "x.readmapdb", facts, arrays)
    return path.parent / "x.readmapdb"


def put(name: str, place: int, value: int) -> Change:
    return lambda arrays: arrays[name].__setitem__(place, value)


def replaced(name: str, change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Change:
    return lambda arrays: arrays.update({name: change(arrays[name])})


def without_sequences(arrays: Arrays) -> None:
    for name in ("lengths", "starts", "order"):
        arrays[name] = arrays[name][:0]
    arrays["title_offsets"] = arrays["title_offsets"][:1] * 0


WRONG = {
    r"lengths.npy holds int32 \[4\], expected int64 \[4\]": replaced("lengths", lambda a: a.astype(np.int32)),
    r"starts.npy holds int64 \[3\], expected int64 \[4\]": replaced("starts", lambda a: a[:-1]),
    r"order.npy holds int64 \[2, 2\], expected int64 \[4\]": replaced("order", lambda a: a.reshape(2, 2)),
    r"title_offsets.npy holds int64 \[4\], expected int64 \[5\]": replaced("title_offsets", lambda a: a[:-1]),
    r"codes.npy holds int8 \[81\], expected uint8 \[81\]": replaced("codes", lambda a: a.view(np.int8)),
    "codes.npy does not end with 64 padding codes": put("codes", -64, 0),
    "codes.npy does not end with 64 padding codes ": replaced("codes", lambda a: a[:10]),
    "starts.npy does not partition the 17 letters": put("starts", 0, 1),
    "starts.npy does not partition the 17 letters ": put("starts", 3, 18),
    "starts.npy does not partition the 17 letters  ": put("starts", 2, -5),
    "starts.npy does not partition the 17 letters   ": without_sequences,
    "lengths.npy contradicts starts": put("lengths", 0, 8),
    "lengths.npy increases, expected the longest sequence first": lambda arrays: arrays.update(
        lengths=np.array([9, 3, 5, 0]), starts=np.array([0, 9, 12, 17])
    ),
    "order.npy does not contain every sequence once": put("order", 0, 0),
    "order.npy does not contain every sequence once ": put("order", 0, 4),
    "order.npy does not contain every sequence once  ": put("order", 0, -1),
    "title_offsets.npy does not partition the 10 letters of the titles": put("title_offsets", 0, 1),
    "title_offsets.npy does not partition the 10 letters of the titles ": put("title_offsets", -1, 2**62),
    "title_offsets.npy does not partition the 10 letters of the titles  ": put("title_offsets", 1, 8),
    "titles.npy contains a title that does not start with a name": put("titles", 7, ord(" ")),
}


@pytest.mark.parametrize("message", WRONG)
def test_opening_rejects_inconsistent_arrays(path: Path, message: str) -> None:
    with pytest.raises(DatabaseFolderError, match=rf"x\.readmapdb: {message.strip()}.*; build the database again"):
        Database.open(stored(path, WRONG[message]), check=False)


def test_a_scan_rejects_invalid_codes(backends: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_folder, "_CHUNK", 4)
    wrong = stored(path, put("codes", 13, 27))
    with pytest.raises(DatabaseFolderError, match=r"codes\.npy contains an invalid code at 12 to 16;"):
        readmap.scan("MKV", wrong, device=backends)


@pytest.mark.parametrize("name", database_folder.ARRAYS)
def test_altered_bytes_are_detected(backends: str, path: Path, name: str) -> None:
    """Opening may not detect them; a scan does, unless verification is disabled."""
    file = path / f"{name}.npy"
    data = bytearray(file.read_bytes())
    data[128] ^= 1
    file.write_bytes(data)
    with pytest.raises(DatabaseFolderError, match=rf"right\.readmapdb: {name}\.npy .*; build the database again"):
        Database.open(path).check(open_backend(backends))
    if name == "codes":
        with pytest.raises(DatabaseFolderError, match=r"codes\.npy was altered: 1 of its 1 blocks, from block 0 on"):
            readmap.scan("MKV", path, device=backends)
        assert readmap.scan("MKV", Database.open(path, check=False), device=backends)
