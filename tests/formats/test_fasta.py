"""A reference's FASTA: all its spellings, and an error for each thing that can be wrong."""

import gzip
import pathlib
import random
import tracemalloc
from collections.abc import Generator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readmap.errors import DataError
from readmap.formats import fasta
from readmap.formats.compression import PieceSource, open_bytes
from readmap.formats.fasta import Fasta, read_fasta

IUPAC = "ACGTURYSWKMBDHVN"


def read(data: bytes) -> Fasta:
    """Reads FASTA that is called ref.fa."""

    def pieces() -> Generator[bytes, None, None]:
        if data:
            yield data

    return read_fasta(PieceSource("ref.fa", pieces()))


def as_dict(result: Fasta) -> dict[str, str]:
    """The sequences by name."""
    ends = zip(result.offsets[:-1], result.offsets[1:], strict=True)
    sequences = [result.letters[start:end].tobytes().decode() for start, end in ends]
    return dict(zip((name.decode() for name in result.names), sequences, strict=True))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b">a\nACGT\n", {"a": "ACGT"}),
        (b">a\nACGT", {"a": "ACGT"}),
        (b">a\r\nAC\r\nGT\r\n", {"a": "ACGT"}),
        (b">a b c\nAC\nGT\n>d\te\nNN\n", {"a": "ACGT", "d": "NN"}),
        (b"\n\r\n>a\n\nAC\n\n\nGT\n\n\n>b\nT\n\n", {"a": "ACGT", "b": "T"}),
        (b">a\nacgtunryswkmbdhv\n", {"a": "ACGTTNRYSWKMBDHV"}),
        (b">a\nACGTUNRYSWKMBDHV\n", {"a": "ACGTTNRYSWKMBDHV"}),
        (b">a >c\nA\n", {"a": "A"}),
        (b">chr|1=x;@?\nA\n", {"chr|1=x;@?": "A"}),
    ],
)
def test_spellings(data: bytes, expected: dict[str, str]) -> None:
    assert as_dict(read(data)) == expected


def test_types() -> None:
    result = read(b">a\nACGT\n>b\nAC\n")
    assert result.letters.dtype == np.uint8
    assert result.letters.tobytes() == b"ACGTAC"
    assert result.offsets.dtype == np.int64
    assert result.offsets.tolist() == [0, 4, 6]
    assert result.names == [b"a", b"b"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "ref.fa: expected FASTA, found no sequence: the file is empty"),
        (b"\n\r\n\n", "ref.fa: expected FASTA, found no sequence: the file is empty"),
        (b"ACGT\n", "ref.fa: expected FASTA, which starts with '>', found 'A'"),
        (b"\n\nACGT\n>a\nA\n", "ref.fa: expected FASTA, which starts with '>', found 'A'"),
        (
            b"@r\nACGT\n+\nIIII\n",
            "ref.fa: expected FASTA, which starts with '>', found '@'; this looks like FASTQ, which holds reads",
        ),
        (b"BAM\1\0\0", "ref.fa: expected FASTA, which starts with '>', found 'B' (it looks like BAM)"),
        (b">a\n>b\nA\n", "ref.fa, record 1 (a): expected a sequence, found an empty contig"),
        (b">a\nA\n>b x\n\n\r\n", "ref.fa, record 2 (b): expected a sequence, found an empty contig"),
        (b">a\nA\n>b", "ref.fa, record 2 (b): expected a sequence, found an empty contig"),
        (b">a\nA\n>b\nA\n>a 2\nC\n", "ref.fa, record 3 (a): record 1 has the same name"),
        (b">a\nA\n>\nA\n", "ref.fa, record 2: expected a name behind '>', found none"),
        (b"> a\nA\n", "ref.fa, record 1: expected a name behind '>', found none"),
        (b">\r\nA\n", "ref.fa, record 1: expected a name behind '>', found none"),
        (b">*\nA\n", "ref.fa, record 1 (*): expected a contig's name as SAM takes it, found '*' at character 1"),
        (
            b">a\nA\n>b,c\nA\n",
            "ref.fa, record 2 (b,c): expected a contig's name as SAM takes it, found ',' at character 2",
        ),
        (
            b">a\0\nA\n",
            "ref.fa, record 1 (a\0): expected a contig's name as SAM takes it, found '\\x00' at character 2",
        ),
        (b">a\nA\n>b\nAC\nG-T\n", "ref.fa, record 2 (b), position 4: expected a nucleotide (IUPAC), found '-'"),
        (b">a\nACGT*\n", "ref.fa, record 1 (a), position 5: expected a nucleotide (IUPAC), found '*'"),
        (b">a\r\nAC\r\nA C\r\n", "ref.fa, record 1 (a), position 4: expected a nucleotide (IUPAC), found ' '"),
        (b">a\nMEEPQ\n", "ref.fa, record 1 (a), position 2: expected a nucleotide (IUPAC), found 'E'"),
        (b">a\nAC>b\n", "ref.fa, record 1 (a), position 3: expected a nucleotide (IUPAC), found '>'"),
        (b">a\nAC\0\n", "ref.fa, record 1 (a), position 3: expected a nucleotide (IUPAC), found byte 0x00"),
        (b">a\n\xe9\n", "ref.fa, record 1 (a), position 1: expected a nucleotide (IUPAC), found byte 0xe9"),
    ],
)
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_errors(monkeypatch: pytest.MonkeyPatch, data: bytes, message: str, block: int) -> None:
    monkeypatch.setattr(fasta, "BLOCK_BYTES", block)
    with pytest.raises(DataError) as error:
        read(data)
    # A block may be too short to see the format.
    assert str(error.value) == (message.split(" (it looks")[0] if block < 4 else message)


def test_names_of_alleles() -> None:
    """GRCh38 has such contigs."""
    assert read(b">HLA-A*01:01:01:01\tx\nACGT\n>a=*b\nA\n").names == [b"HLA-A*01:01:01:01", b"a=*b"]


names = st.lists(st.text("abc@|.", min_size=1, max_size=4), min_size=1, max_size=5, unique=True)


@settings(max_examples=80, deadline=None)
@given(st.data(), names, st.integers(1, 20), st.integers(1, 9), st.sampled_from(["\n", "\r\n", "\n\n", "\r\n\n"]))
def test_round_trip(data: st.DataObject, names: list[str], block: int, width: int, line_break: str) -> None:
    contigs = {name: data.draw(st.text(IUPAC + IUPAC.lower(), min_size=1, max_size=20)) for name in names}
    text = ""
    for name, sequence in contigs.items():
        comment = data.draw(st.sampled_from(["", " ", " a comment", "\t>x"]))
        lines = [sequence[i : i + width] for i in range(0, len(sequence), width)]
        text += line_break.join([f">{name}{comment}", *lines]) + line_break
    if data.draw(st.booleans()):
        text = text.rstrip("\r\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fasta, "BLOCK_BYTES", block)
        result = read(text.encode())
    assert as_dict(result) == {name: sequence.upper().replace("U", "T") for name, sequence in contigs.items()}


def test_gzip_and_progress(tmp_path: pathlib.Path) -> None:
    sequence = "".join(random.Random(1).choices("ACGT", k=1_500_000))
    text = ">chr1\n" + "\n".join(sequence[i : i + 60] for i in range(0, len(sequence), 60)) + "\n"
    path = tmp_path / "ref.fa.gz"
    path.write_bytes(gzip.compress(text.encode(), 1))
    steps: list[int] = []
    with open_bytes(str(path)) as source:
        result = read_fasta(source, steps.append)
    assert as_dict(result) == {"chr1": sequence}
    assert steps == sorted(set(steps))
    assert steps[-1] == len(text)


def test_broken_gzip(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ref.fa.gz"
    path.write_bytes(gzip.compress(b">a\nACGT\n")[:-5])
    with (
        open_bytes(str(path)) as source,
        pytest.raises(DataError, match=r"ref\.fa\.gz: unexpected end of the compressed data"),
    ):
        read_fasta(source)


def test_many_contigs() -> None:
    result = read(b"".join(b">contig_%d\nACGTACGTAC\nGT\n" % i for i in range(100_000)))
    assert len(result.names) == 100_000
    assert result.names[99_999] == b"contig_99999"
    assert np.array_equal(result.offsets, np.arange(100_001) * 12)


def test_memory_stays_near_a_byte_a_base() -> None:
    count = 30_000_000
    line = b"ACGT" * 20 + b"\n"

    def pieces() -> Generator[bytes, None, None]:
        yield b">a\n"
        for _ in range(count // 80 // 1000):
            yield line * 1000

    tracemalloc.start()
    result = read_fasta(PieceSource("ref.fa", pieces()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(result.letters) == count
    assert peak < 1.6 * count
