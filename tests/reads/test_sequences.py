"""Test sequences from FASTA and FASTQ: all spellings, an error for each defect, and the methods of Sequences."""

import gzip
import random
import subprocess
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from readmap.errors import DataError
from readmap.formats.alphabets import Alphabet, guess_alphabet
from readmap.reads import sequences
from readmap.reads.sequences import Sequences, concatenate, read_sequences, read_sequences_guessing_alphabet


def read(folder: Path, data: bytes, alphabet: Alphabet = Alphabet.NUCLEOTIDES) -> Sequences:
    """Read a file named x."""
    (folder / "x").write_bytes(data)
    return read_sequences(str(folder / "x"), alphabet=alphabet)


def as_pairs(found: Sequences) -> list[tuple[str, str]]:
    return [(name.decode(), letters.tobytes().decode()) for name, letters in zip(found.names, found, strict=True)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b">a x\nACG\nTu\n>b\nnr\n", [("a", "ACGTT"), ("b", "NR")]),
        (b">a\n>b\r\n\r\nAC\r\n>c", [("a", ""), ("b", "AC"), ("c", "")]),
        (b">a\nA\n>a\nC\n", [("a", "A"), ("a", "C")]),
        (b"\n>a\nA\n", [("a", "A")]),
        (b"@a x\nACGu\n+\nIIII\n@b\nN\n+b\n@\n", [("a", "ACGT"), ("b", "N")]),
        (b"@a\r\nAC\r\n+\r\nII\r\n@a\r\n\r\n+\r\n\r\n", [("a", "AC"), ("a", "")]),
        (b"@a\nAC\n+\nII", [("a", "AC")]),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_spellings(tmp_path: Path, data: bytes, compressed: bool, expected: list[tuple[str, str]]) -> None:
    assert as_pairs(read(tmp_path, gzip.compress(data) if compressed else data)) == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected FASTA, found no sequence: the file is empty"),
        (b"ACGT\n", "expected FASTA, which starts with '>', found 'A'"),
        (b">a\nA\n>\nC\n", "record 2: expected a name after '>', found none"),
        (b">a\nA\n>b\nAC-T\n", "record 2 (b), position 3: expected a nucleotide (IUPAC), found '-'"),
        (b"@a\nA\n+\nI\n@b\nAC\n+\nI\n", "record 2 (b): quality has 1 characters, sequence has 2"),
        (b"@a\nA\n+\nI\n@b\nA-\n+\nII\n", "record 2 (b): expected a nucleotide at base 2, found '-'"),
        (b"@a\nA\n+\nI\nb\nA\n+\nI\n", "record 2: expected a header starting with '@', found 'b'"),
        (b"@a\nA\n+\nI\n@ b\nA\n+\nI\n", "record 2: expected a name after '@', found none"),
        (b"@a\nA\n+\nI\n@b\nA\n", "record 2 (b): record is truncated: expected 4 lines, found 2"),
        (b"@a\nA\nI\nI\n", "record 1 (a): expected a line starting with '+', found 'I'"),
        (b"@a\nA\n+a b\nI\n@b\nAC\n+ x\nI\x7f\n", "record 2 (b): expected a quality of '!' to '~' at base 2, found"),
        (b"@a\nA\n+\nI\n@b\nA\n+a\nI\n", "record 2 (b): expected nothing or the read name after '+', found"),
        (gzip.compress(b">a\nACGT\n")[:-6], "unexpected end of the compressed data"),
    ],
    ids=[
        *("empty", "letters", "name", "gap", "quality", "letter", "no @", "no name", "truncated", "no +"),
        *("quality's range", "another name", "gzip"),
    ],
)
def test_errors(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, data)
    assert str(caught.value).startswith(f"{tmp_path}/x")
    assert message in str(caught.value)


PROTEIN_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ*"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (f">a x\n{PROTEIN_LETTERS}\n".encode(), [("a", PROTEIN_LETTERS)]),
        (f">a\n{PROTEIN_LETTERS.lower()}".encode(), [("a", PROTEIN_LETTERS)]),
        (b">a\r\nMKu\r\n\r\nX*\r\n>b\r\n>a\r\nO", [("a", "MKUX*"), ("b", ""), ("a", "O")]),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_proteins(tmp_path: Path, data: bytes, compressed: bool, expected: list[tuple[str, str]]) -> None:
    assert as_pairs(read(tmp_path, gzip.compress(data) if compressed else data, Alphabet.PROTEINS)) == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected FASTA, found no sequence: the file is empty"),
        (
            b">a\nM\n>b\nMK\nL-\n",
            "record 2 (b), position 4: expected an amino acid (A to Z, or * for a stop), found '-'",
        ),
        (b">a\nM\xe9\n", "position 2: expected an amino acid (A to Z, or * for a stop), found byte 0xe9"),
        (b">a\nM\n> b\nM\n", "record 2: expected a name after '>', found none"),
        (b"@a\nM\n+\nI\n", "expected FASTA, which starts with '>', found '@'; this looks like FASTQ"),
    ],
    ids=["empty", "gap", "no ASCII", "name", "FASTQ"],
)
def test_errors_of_proteins(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, data, Alphabet.PROTEINS)
    assert str(caught.value).startswith(f"{tmp_path}/x")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "titles"),
    [
        (b">a one  >two \t\r\nA\n>b\nA\n>c\t\xe9\n", [b"a one  >two", b"b", b"c\t\xe9"]),
        (b"@a one @two \r\nA\r\n+\r\nI\r\n@b\nA\n+b\nI\n", [b"a one @two", b"b"]),
    ],
    ids=["FASTA", "FASTQ"],
)
def test_titles(tmp_path: Path, data: bytes, titles: list[bytes]) -> None:
    found = read(tmp_path, data)
    assert found.titles == titles
    assert found.names == [title.split()[0] for title in titles]
    assert found.reverse_complements().titles == titles
    assert concatenate([found.part(0, 1), found.part(1, len(titles))]).titles == titles


def test_titles_default_to_names() -> None:
    assert Sequences([b"a"], np.frombuffer(b"A", np.uint8), np.array([0, 1])).titles == [b"a"]


@pytest.mark.parametrize(
    ("start", "alphabet"),
    [
        (b">protein\nACGT\nacgun\n", Alphabet.NUCLEOTIDES),
        (b">a\n" + b"ACGTUNACG" * 10 + b"RYSWKMBDHV", Alphabet.NUCLEOTIDES),
        (b">a\n" + b"ACGTUNACG" * 10 + b"RYSWKMBDHVR", Alphabet.PROTEINS),
        (b">acgtacgtacgt\r\n\r\nMKV\r\nL*\r\n>acgtacgt", Alphabet.PROTEINS),
        (b">a\nACGT-----", Alphabet.NUCLEOTIDES),
        (b"@a\nMKVL\n+\nIIII\n", Alphabet.NUCLEOTIDES),
        (b"", Alphabet.NUCLEOTIDES),
        (b">a\n>b\n", Alphabet.NUCLEOTIDES),
    ],
    ids=["plain", "nine tenths", "less", "protein", "only letters count", "FASTQ", "empty", "no letters"],
)
def test_guess_alphabet(start: bytes, alphabet: Alphabet) -> None:
    assert guess_alphabet(start) is alphabet


def test_guessing_does_not_lose_text(tmp_path: Path) -> None:
    """Also from a pipe, and independent of the text after the first megabyte."""
    protein = b">a one\n" + b"MKVLAW\n" * 300_000 + b">b\n" + b"ACGT\n" * 300_000
    for name, data, alphabet in (
        ("plain", protein, Alphabet.PROTEINS),
        ("gzip", gzip.compress(protein, 1), Alphabet.PROTEINS),
        ("dna", b">a\nACGT\n", Alphabet.NUCLEOTIDES),
    ):
        (tmp_path / name).write_bytes(data)
        expected = read_sequences(str(tmp_path / name), 1, alphabet)
        with subprocess.Popen(["cat", str(tmp_path / name)], stdout=subprocess.PIPE) as cat:
            assert cat.stdout
            for path in (str(tmp_path / name), f"/dev/fd/{cat.stdout.fileno()}"):
                found, guessed = read_sequences_guessing_alphabet(path, 2)
                assert guessed is alphabet
                assert as_pairs(found) == as_pairs(expected)


def test_many_records_of_fastq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "CHUNK_BYTES", 2000)
    generator = random.Random(1)
    expected = [(f"r{i}", "".join(generator.choices("ACGT", k=generator.randrange(300)))) for i in range(500)]
    data = "".join(f"@{name} c\n{letters}\n+\n{'I' * len(letters)}\n" for name, letters in expected)
    assert as_pairs(read(tmp_path, data.encode())) == expected
    bad = data.replace("@r400 c\nA", "@r400 c\n!").replace("@r400 c\nC", "@r400 c\n!")
    with pytest.raises(DataError, match=r"record 401 \(r400\)"):
        read(tmp_path, bad.replace("@r400 c\nG", "@r400 c\n!").replace("@r400 c\nT", "@r400 c\n!").encode())


def test_memory_of_a_long_sequence(tmp_path: Path) -> None:
    bases = 20_000_000
    (tmp_path / "x").write_bytes(b">a\n" + b"ACGT" * (bases // 4) + b"\n")
    tracemalloc.start()
    found = read_sequences(str(tmp_path / "x"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.lengths.tolist() == [bases]
    assert peak < 1.6 * bases


@pytest.mark.parametrize("count", [1, 2, 5])
def test_reverse_complements(count: int) -> None:
    generator = random.Random(count)
    texts = ["".join(generator.choices("ACGTRYSWKMBDHVN", k=generator.randrange(30))) for _ in range(count)]
    offsets = np.cumsum([0, *map(len, texts)])
    found = Sequences([b"x"] * count, np.frombuffer("".join(texts).encode(), np.uint8), offsets).reverse_complements()
    table = str.maketrans("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN")
    assert [text for _, text in as_pairs(found)] == [text[::-1].translate(table) for text in texts]
    assert as_pairs(found.reverse_complements()) == [("x", text) for text in texts]


def test_joined_parts() -> None:
    whole = Sequences([b"a", b"b", b"c"], np.frombuffer(b"ACGTT", np.uint8), np.array([0, 2, 2, 5]))
    again = concatenate([whole.part(0, 1), whole.part(1, 1), whole.part(1, 3)])
    assert as_pairs(again) == [("a", "AC"), ("b", ""), ("c", "GTT")]
