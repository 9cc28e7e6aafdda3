"""Test databases: sorted by length, equal in memory and from a folder, and errors for damage."""

import gzip
import os
import random
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import fasta, index_of, write_folder
from protein_examples import LETTERS, proteins, sequences_of

from readmap.database import database
from readmap.database import folder as database_folder
from readmap.database.database import PADDING, Database, build_database, open_database
from readmap.database.letters import CODE_OF_BYTE, NO_LETTER, PAD, STOP, codes_of
from readmap.errors import DatabaseFolderError, DataError, IndexFolderError
from readmap.formats.alphabets import Alphabet
from readmap.index import folder
from readmap.index.index import Index
from readmap.reads.sequences import read_sequences

ARRAYS = ("codes", "starts", "lengths", "order")


def fasta_of(texts: list[str]) -> str:
    titles = sequences_of(texts).titles
    return "".join(f">{title.decode()}\n{text[:50]}\n{text[50:]}\n" for title, text in zip(titles, texts, strict=True))


def texts_of(found: Database) -> list[str]:
    """Return the sequences in the order of the file."""
    codes = np.asarray(found.codes)
    texts = [""] * len(found)
    for number, start, length in zip(found.order, found.starts, found.lengths, strict=True):
        texts[number] = "".join(LETTERS[code] for code in codes[start : start + length])
    return texts


def assert_same(found: Database, expected: Database) -> None:
    for name in ARRAYS:
        array, again = getattr(expected, name), getattr(found, name)
        assert (again.dtype, again.shape) == (array.dtype, array.shape)
        assert np.array_equal(again, array)
    assert list(found.titles) == list(expected.titles)
    assert list(found.names) == list(expected.names)
    assert (found.molecule, found.source) == (expected.molecule, expected.source)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Database.of(sequences_of(proteins([9, 70, 0, 30, 70])), Alphabet.PROTEINS, "db.fa").write(tmp_path / "db.readmapdb")
    return tmp_path / "db.readmapdb"


# Letters.


def test_codes() -> None:
    assert codes_of(np.frombuffer(LETTERS.encode(), np.uint8)).tolist() == [*range(26), STOP]
    assert codes_of(np.frombuffer(LETTERS.lower().encode(), np.uint8)).tolist() == [*range(26), STOP]
    every = np.arange(256, dtype=np.uint8)
    assert np.array_equal(codes_of(every), CODE_OF_BYTE)
    assert CODE_OF_BYTE.dtype == codes_of(every).dtype == np.uint8
    assert set(every[CODE_OF_BYTE == NO_LETTER].tolist()) == set(range(256)) - set((LETTERS + LETTERS.lower()).encode())
    assert PAD not in CODE_OF_BYTE


def test_codes_are_a_new_array() -> None:
    letters = np.frombuffer(b"ACGT", np.uint8)
    codes = codes_of(letters)
    codes[0] = PAD
    assert letters.tobytes() == b"ACGT"


# In memory.


@pytest.mark.parametrize(
    "lengths",
    [[], [0], [1], [0, 0, 0], [5, 5, 5], [3, 0, 7, 7, 1, 0, 3], [1, 200, 3], [40] * 9 + [2] * 50 + [41, 120, 64, 16]],
    ids=str,
)
@pytest.mark.parametrize("block", [1, 16, 1 << 16])
def test_longest_first(monkeypatch: pytest.MonkeyPatch, lengths: list[int], block: int) -> None:
    monkeypatch.setattr(database, "BLOCK_LETTERS", block)
    texts = proteins(lengths)
    found = Database.of(sequences_of(texts), "protein", "x")
    expected = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    assert found.order.tolist() == expected
    assert found.lengths.tolist() == sorted(lengths, reverse=True)
    assert found.starts.tolist() == [sum(found.lengths[:rank]) for rank in range(len(lengths))]
    assert texts_of(found) == texts
    assert found.codes[found.letters :].tolist() == [PAD] * PADDING
    assert (len(found), found.letters, found.longest) == (len(lengths), sum(lengths), max(lengths, default=0))
    assert found.molecule is Alphabet.PROTEINS
    for name, dtype in zip(ARRAYS, (np.uint8, np.int64, np.int64, np.int64), strict=True):
        assert getattr(found, name).dtype == dtype


def test_many_sequences_of_many_lengths() -> None:
    generator = random.Random(2)
    texts = proteins([generator.choice((0, 1, 50, 300, generator.randrange(9000))) for _ in range(400)])
    found = Database.of(sequences_of(texts), Alphabet.PROTEINS)
    assert texts_of(found) == texts
    ranks = [(-len(texts[number]), number) for number in found.order]
    assert ranks == sorted(ranks)


def test_titles_and_names() -> None:
    found = Database.of(sequences_of(proteins([3, 9, 5])), Alphabet.PROTEINS)
    assert list(found.titles) == [b"p0", b"p1 protein 1", b"p2 protein 2"]
    assert list(found.names) == [b"p0", b"p1", b"p2"]
    assert (found.titles[1], found.names[2], len(found.names)) == (b"p1 protein 1", b"p2", 3)
    for number in (-1, 3):
        with pytest.raises(IndexError):
            found.titles[number]


# From files.


@pytest.mark.parametrize("molecule", [None, Alphabet.PROTEINS], ids=["guessed", "known"])
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_folder_file_and_memory_are_equal(tmp_path: Path, molecule: Alphabet | None, compressed: bool) -> None:
    texts = proteins([9, 70, 0, 130, 70, 0])
    data = fasta_of(texts).encode()
    file = tmp_path / "db.fa"
    file.write_bytes(gzip.compress(data) if compressed else data)
    source = str(file)
    built = build_database(source, 2, molecule)
    assert_same(built, Database.of(sequences_of(texts), Alphabet.PROTEINS, source))
    assert_same(open_database(source, 1, molecule), built)
    built.write(tmp_path / "db.readmapdb")
    opened = Database.open(tmp_path / "db.readmapdb")
    assert_same(opened, built)
    assert_same(open_database(str(tmp_path / "db.readmapdb"), 1, molecule), built)
    assert all(isinstance(getattr(opened, name), np.memmap) for name in ARRAYS)
    assert isinstance(opened.titles.text, np.memmap)
    opened.write(tmp_path / "again.readmapdb")
    for name in os.listdir(tmp_path / "db.readmapdb"):
        assert (tmp_path / "db.readmapdb" / name).read_bytes() == (tmp_path / "again.readmapdb" / name).read_bytes()


def test_letters_of_either_case_and_of_rna(tmp_path: Path) -> None:
    (tmp_path / "db.fa").write_text(">a\nacgun\n>b\nACGTN\n>c\nRYSWKMBDHVN\n")
    found = open_database(str(tmp_path / "db.fa"), molecule=Alphabet.NUCLEOTIDES)
    assert texts_of(found) == ["ACGTN", "ACGTN", "RYSWKMBDHVN"]
    assert found.molecule is Alphabet.NUCLEOTIDES
    assert texts_of(open_database(str(tmp_path / "db.fa"), molecule=Alphabet.PROTEINS))[0] == "ACGUN"


def test_the_order_of_the_file_changes_only_order(tmp_path: Path) -> None:
    """The lengths are distinct, so the codes do not depend on the order of the file."""
    texts = proteins([7, 3, 90, 20, 0, 55])
    turned = texts[::-1]
    one, other = (Database.of(sequences_of(each), Alphabet.PROTEINS) for each in (texts, turned))
    assert np.array_equal(one.codes, other.codes)
    assert np.array_equal(one.starts, other.starts)
    assert np.array_equal(one.order, len(texts) - 1 - other.order)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "expected FASTA, found no sequence: the file is empty"),
        (
            ">a\nMKVL\n>b\nMK-VL\n",
            "record 2 (b), position 3: expected an amino acid (A to Z, or * for a stop), found '-'",
        ),
        (
            ">a\nACGTACGTACGT\n>b\nACGTACGTACGTE\n",
            "record 2 (b), position 13: expected a nucleotide (IUPAC), found 'E'",
        ),
    ],
    ids=["empty", "protein", "nucleotide"],
)
def test_bad_files(tmp_path: Path, data: str, message: str) -> None:
    (tmp_path / "db.fa").write_text(data)
    with pytest.raises(DataError) as caught:
        open_database(str(tmp_path / "db.fa"))
    assert str(caught.value).startswith(f"{tmp_path}/db.fa")
    assert message in str(caught.value)


def test_the_wrong_molecule_is_rejected(path: Path) -> None:
    with pytest.raises(DataError, match=r"db\.readmapdb: expected a database of nucleotide sequences, found pr"):
        open_database(str(path), molecule=Alphabet.NUCLEOTIDES)


def test_memory_per_letter(tmp_path: Path) -> None:
    (tmp_path / "db.fa").write_bytes(
        b"".join(b">p%d\n" % i + b"MKVLA" * (100 + i % 200) + b"\n" for i in range(20_050))
    )
    tracemalloc.start()
    found = build_database(str(tmp_path / "db.fa"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.letters == 19_981_125
    assert peak < 3 * found.letters


def test_the_human_proteome(shared: Path, tmp_path: Path) -> None:
    file = str(shared / "data/protein/human_proteome.fa.gz")
    found, sequences = open_database(file, 2), read_sequences(file, 2, Alphabet.PROTEINS)
    assert found.molecule is Alphabet.PROTEINS
    assert (len(found), found.letters) == (len(sequences), len(sequences.letters))
    assert list(found.titles) == sequences.titles
    assert list(found.names) == sequences.names
    rank = int(np.flatnonzero(found.order == 7)[0])
    start, length = int(found.starts[rank]), int(found.lengths[rank])
    expected = sequences.letters[sequences.offsets[7] : sequences.offsets[8]]
    assert np.array_equal(found.codes[start : start + length], codes_of(expected))


# What can be wrong with a folder.


def test_damage_raises_database_folder_error(path: Path) -> None:
    """test_index_folder.py tests all kinds of damage."""
    file = path / f"{database_folder.ARRAYS[0]}.npy"
    os.truncate(file, file.stat().st_size - 1)
    with pytest.raises(
        DatabaseFolderError, match=rf"{file.name} has \d+ bytes, expected \d+; build the database again"
    ):
        Database.open(path)
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"protein"', '"nucleotide"'))
    with pytest.raises(DatabaseFolderError, match=r"manifest\.json is damaged or was altered"):
        Database.open(path)
    manifest.unlink()
    with pytest.raises(DatabaseFolderError, match=r"db\.readmapdb is no readmap database: it has no manifest\.json"):
        Database.open(path)


def test_an_unknown_molecule_is_rejected(path: Path, tmp_path: Path) -> None:
    found = Database.open(path)
    arrays: dict[str, Any] = {name: getattr(found, name) for name in ARRAYS}
    arrays |= {"titles": found.titles.text, "title_offsets": found.titles.offsets}
    write_folder(database_folder.KIND, tmp_path / "x", {"source": "x", "molecule": "sugar"}, arrays)
    with pytest.raises(DatabaseFolderError, match=r"manifest\.json is damaged \('sugar' is not a valid Alphabet\)"):
        Database.open(tmp_path / "x")


def test_indexes_and_databases_are_not_confused(path: Path, tmp_path: Path) -> None:
    index = index_of(["ACGT" * 30])
    index.write(tmp_path / "ref.readmap")
    with pytest.raises(DatabaseFolderError, match=r"ref\.readmap is a readmap index and no readmap database"):
        open_database(str(tmp_path / "ref.readmap"))
    with pytest.raises(IndexFolderError, match=r"db\.readmapdb is a readmap database and no readmap index"):
        Index.open(path)
    with pytest.raises(IndexFolderError, match=r"db\.readmapdb is a readmap database and no readmap index"):
        folder.find(str(path))
    with pytest.raises(IndexFolderError, match="exists and is no readmap index: it is not replaced"):
        index.write(path, force=True)
    with pytest.raises(DatabaseFolderError, match="exists and is no readmap database: it is not replaced"):
        Database.open(path).write(tmp_path / "ref.readmap", force=True)


def test_an_index_named_by_the_environment_must_be_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(folder.INDEX_VARIABLE, str(path))
    with pytest.raises(IndexFolderError, match=r"db\.readmapdb \(\$READMAP_INDEX\) is a readmap database"):
        folder.find(None)


# Writing.


def test_the_default_index_is_not_a_database(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by the ending of its name, nor where an index was asked for."""
    monkeypatch.chdir(path.parent)
    index_of(["ACGT" * 30]).write(path.parent / "ref.fa.readmap")
    shutil.copytree(path, path.parent / "db.readmap")
    assert folder.find(None) == Path("ref.fa.readmap")


@pytest.mark.parametrize("name", ["db.fa", "db.fa.gz"])
def test_default_folder(name: str) -> None:
    assert database_folder.default_folder(f"a/{name}") == Path("a/db.fa.readmapdb")


def test_contigs_are_a_nucleotide_database(tmp_path: Path) -> None:
    (tmp_path / "ref.fa").write_bytes(fasta({"a": "ACGT" * 20, "b": "N" * 90}))
    found = open_database(str(tmp_path / "ref.fa"))
    assert (found.molecule, found.order.tolist(), found.names[0]) == ("nucleotide", [1, 0], b"a")
