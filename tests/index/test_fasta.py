"""Reading the reference from FASTA: accepted spellings, and an error message for each defect."""

import gzip
import hashlib
import itertools
import pathlib
import random
import tracemalloc
from collections.abc import Callable, Generator
from functools import partial

import numpy as np
import pytest
from examples import fasta_source
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import contigs

from readmap.backend import Array, Backend, open_backend
from readmap.backend.compilation.declarations import constant
from readmap.errors import DataError
from readmap.formats.byte_source import GeneratorSource, open_bytes
from readmap.index import fasta
from readmap.index.fasta import read_reference
from readmap.index.reference import Reference

IUPAC = "ACGTURYSWKMBDHVN"
BLOCK = constant("index/fasta.cu", "BLOCK")


@pytest.fixture(scope="module")
def backend(backends: str) -> Generator[Backend, None, None]:
    """Return each backend, once as on a host without a C++ compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fasta, "host_backend", lambda module, threads: None)
        yield open_backend(backends, 2)


def read(data: bytes, backend: Backend) -> Reference:
    """Read FASTA as from a file ref.fa."""
    return read_reference(fasta_source(data), backend)


def as_dict(reference: Reference) -> dict[str, str]:
    """Return the sequences by name, after checking their MD5s."""
    starts = reference.contig_starts.tolist()
    found = {}
    for contig, start in zip(reference.contigs, starts[:-1], strict=True):
        letters = reference.letters(start, start + contig.length).tobytes()
        assert contig.md5 == hashlib.md5(letters).hexdigest()
        found[contig.name] = letters.decode()
    assert starts == [0, *itertools.accumulate(contig.length + 1 for contig in reference.contigs)]
    return found


def read_as_dict(data: bytes, backend: Backend) -> dict[str, str]:
    return as_dict(read(data, backend))


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
        (b">HLA-A*01:01:01:01\tx\nACGT\n>a=*b\nA\n", {"HLA-A*01:01:01:01": "ACGT", "a=*b": "A"}),
    ],
)
def test_spellings(backend: Backend, data: bytes, expected: dict[str, str]) -> None:
    assert read_as_dict(data, backend) == expected


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
        (b">a\nA\n>\nA\n", "ref.fa, record 2: expected a name after '>', found none"),
        (b"> a\nA\n", "ref.fa, record 1: expected a name after '>', found none"),
        (b">\r\nA\n", "ref.fa, record 1: expected a name after '>', found none"),
        (b">*\nA\n", "ref.fa, record 1 (*): expected a contig name allowed in SAM, found '*' at character 1"),
        (
            b">a\nA\n>b,c\nA\n",
            "ref.fa, record 2 (b,c): expected a contig name allowed in SAM, found ',' at character 2",
        ),
        (b">a\0\nA\n", "ref.fa, record 1 (a\0): expected a contig name allowed in SAM, found '\\x00' at character 2"),
        (b">a\nA\n>b\nAC\nG-T\n", "ref.fa, record 2 (b), position 4: expected a nucleotide (IUPAC), found '-'"),
        (b">a\nACGT*\n", "ref.fa, record 1 (a), position 5: expected a nucleotide (IUPAC), found '*'"),
        (b">a\r\nAC\r\nA C\r\n", "ref.fa, record 1 (a), position 4: expected a nucleotide (IUPAC), found ' '"),
        (b">a\nMEEPQ\n", "ref.fa, record 1 (a), position 2: expected a nucleotide (IUPAC), found 'E'"),
        (b">a\nAC>b\n", "ref.fa, record 1 (a), position 3: expected a nucleotide (IUPAC), found '>'"),
        (b">a\nAC\0\n", "ref.fa, record 1 (a), position 3: expected a nucleotide (IUPAC), found byte 0x00"),
        (b">a\n\xe9\n", "ref.fa, record 1 (a), position 1: expected a nucleotide (IUPAC), found byte 0xe9"),
    ],
)
@pytest.mark.parametrize("chunk", [2, 3, 1 << 20])
def test_errors(monkeypatch: pytest.MonkeyPatch, backend: Backend, data: bytes, message: str, chunk: int) -> None:
    monkeypatch.setattr(fasta, "CHUNK_BYTES", chunk)
    with pytest.raises(DataError) as error:
        read(data, backend)
    # A chunk may be too short to see the format.
    assert str(error.value) == (message.split(" (it looks")[0] if chunk < 4 else message)


@pytest.mark.parametrize(
    "line",
    [b"A\rC", b"\r" * 70 + b"GATTACA", b"ACGT\r" * 40, b"ACGT" * 20 + b"\r\r"],
    ids=["one", "first", "many", "last"],
)
def test_carriage_returns_anywhere(monkeypatch: pytest.MonkeyPatch, backend: Backend, line: bytes) -> None:
    """Carriage returns are skipped, and nothing is written outside the text."""
    canaries: list[Array] = []
    empty = backend.empty

    def guarded(shape: int, dtype: type[np.generic]) -> Array:
        if dtype is not np.uint8:
            return empty(shape, dtype)
        array = empty(shape + 100, dtype)
        array.fill(7)
        canaries.append(array[shape:])
        return array[:shape]

    monkeypatch.setattr(backend, "empty", guarded)
    reference = read(b">a\n" + line + b"\n" + line, backend)
    assert reference.letters(0, reference.bases).tobytes() == line.replace(b"\r", b"") * 2
    assert canaries
    assert all((backend.to_host(canary) == 7).all() for canary in canaries)


def test_maximum_contig_length(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    assert fasta.MAX_CONTIG_BASES == 2**31 - 1
    monkeypatch.setattr(fasta, "MAX_CONTIG_BASES", 1000)
    read(b">a\n" + b"ACGTN" * 200 + b"\n>b\n" + b"A" * 1000, backend)
    for data in (b">a\nA\n>b\n" + b"ACGTN\n" * 200 + b"A", b">a\nA\n>b\n" + b"ACGTN" * 200 + b"A\n>c\nA\n"):
        message = r"ref\.fa, record 2 \(b\): expected at most 1,000 bases, SAM's maximum, found 1,001"
        with pytest.raises(DataError, match=message):
            read(data, backend)


def test_invalid_bytes(backend: Backend) -> None:
    for byte in range(256):
        data = b">a\n" + b"ACGT" * 20 + bytes([byte]) + b"ACGT" * 9 + b"\n"
        if byte in b"\r\n" or chr(byte).upper() in IUPAC:
            assert read(data, backend).bases == 116 + (byte not in b"\r\n")
        else:
            with pytest.raises(DataError, match=r"record 1 \(a\), position 81: expected a nucleotide"):
                read(data, backend)


names = st.lists(st.text("abc@|.", min_size=1, max_size=4), min_size=1, max_size=5, unique=True)


@settings(max_examples=80, deadline=None)
@given(st.data(), names, st.integers(2, 20), st.integers(1, 9), st.sampled_from(["\n", "\r\n", "\n\n", "\r\n\n"]))
def test_round_trip(
    backend: Backend, data: st.DataObject, names: list[str], chunk: int, width: int, line_break: str
) -> None:
    contigs = {name: data.draw(st.text(IUPAC + IUPAC.lower(), min_size=1, max_size=20)) for name in names}
    text = ""
    for name, sequence in contigs.items():
        comment = data.draw(st.sampled_from(["", " ", " a comment", "\t>x"]))
        lines = [sequence[i : i + width] for i in range(0, len(sequence), width)]
        text += line_break.join([f">{name}{comment}", *lines]) + line_break
    if data.draw(st.booleans()):
        text = text.rstrip("\r\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fasta, "CHUNK_BYTES", chunk)
        result = read(text.encode(), backend)
    assert as_dict(result) == {name: sequence.upper().replace("U", "T") for name, sequence in contigs.items()}


def draw_fasta(draw: random.Random) -> bytes:
    """Return some kilobases of FASTA that span blocks and chunks; every other text has one random change."""
    text = draw.choice([b"", b"\n", b"\r\n\n"])
    line_break, width = draw.choice([b"\n", b"\r\n", b"\n\n"]), draw.choice([1, 31, 60, 70, 5_000, 1 << 20])
    for number in range(draw.randrange(1, 6)):
        letters = draw.choice(["ACGT", "ACGTN", "acgtACGTuURYSWKMBDHVN", "N", "NR"])
        bases = "".join(draw.choices(letters, k=draw.choice([1, 5, 31, 32, 33, 64, 100, 3_000, 20_000]))).encode()
        lines = [bases[i : i + width] for i in range(0, len(bases), width)]
        comment = draw.choice([b"", b" x>y", b"\tz", b" " * 40, b" " * 20_000])
        text += line_break.join([b">c%d%s" % (number, comment), *lines, b""])
    if draw.random() < 0.3:
        text = text.rstrip(b"\r\n")
    if draw.random() < 0.5:
        place = draw.randrange(len(text) + 1)
        parts = (b"\n", b"\r", b">", b"\n>", b" ", b"-", b"@", b"\0", b"\xe9", b"A", b",", b"\n\n>c1\n", b"*")
        text = text[:place] + draw.choice(parts) + text[place + draw.randrange(2) :]
    return text


def outcome(reading: Callable[[], dict[str, str]]) -> dict[str, str] | str:
    """Return the result of `reading`, or its error message."""
    try:
        return reading()
    except DataError as error:
        return str(error)


def test_any_text(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    """The result, or the error, is that of a reader of single lines."""
    wrong = 0
    for seed in range(60):
        draw = random.Random(seed)
        data = draw_fasta(draw)
        monkeypatch.setattr(fasta, "CHUNK_BYTES", draw.choice([len(data) // 20 + 8, BLOCK, 3 * BLOCK + 1, 1 << 20]))
        expected = outcome(partial(contigs.read, "ref.fa", data))
        assert outcome(partial(read_as_dict, data, backend)) == expected, seed
        wrong += isinstance(expected, str)
    assert 8 < wrong < 40


def test_gzip_and_progress(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    monkeypatch.setattr(fasta, "CHUNK_BYTES", 300_000)
    sequence = "".join(random.Random(1).choices("ACGT", k=1_500_000))
    text = ">chr1\n" + "\n".join(sequence[i : i + 60] for i in range(0, len(sequence), 60)) + "\n"
    path = tmp_path / "ref.fa.gz"
    path.write_bytes(gzip.compress(text.encode(), 1))
    steps: list[int] = []
    with open_bytes(str(path)) as source:
        result = read_reference(source, backend, steps.append)
    assert as_dict(result) == {"chr1": sequence}
    assert len(steps) > 4
    assert steps == sorted(set(steps))
    assert steps[-1] == len(text)


def test_broken_gzip(tmp_path: pathlib.Path, backend: Backend) -> None:
    path = tmp_path / "ref.fa.gz"
    path.write_bytes(gzip.compress(b">a\nACGT\n")[:-5])
    with (
        open_bytes(str(path)) as source,
        pytest.raises(DataError, match=r"ref\.fa\.gz: unexpected end of the compressed data"),
    ):
        read_reference(source, backend)


def test_many_contigs(backend: Backend) -> None:
    result = read(b"".join(b">contig_%d\nACGTACGTAC\nGT\n" % i for i in range(100_000)), backend)
    assert len(result.contigs) == 100_000
    assert {contig.md5 for contig in result.contigs} == {hashlib.md5(b"ACGTACGTACGT").hexdigest()}
    assert result.contigs[99_999].name == "contig_99999"
    assert np.array_equal(result.contig_starts, np.arange(100_001) * 13)


def test_memory_limit() -> None:
    """Chunks that are read faster than they are digested do not accumulate."""
    count = 300_000_000
    lines = (b"ACGT" * 20 + b"\n") * 10_000

    def pieces() -> Generator[bytes, None, None]:
        yield b">a\n"
        for _ in range(count // 80 // 10_000):
            yield lines

    tracemalloc.start()
    result = read_reference(GeneratorSource("ref.fa", pieces()), open_backend("cpu", 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.bases == count
    assert peak < 1.25 * count / 4 + 6 * fasta.CHUNK_BYTES
