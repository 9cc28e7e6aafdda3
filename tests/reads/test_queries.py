"""Test parsing and packing: the positions of each record's parts, the first invalid record, both orientations."""

import random
import re
from typing import Any

import numpy as np
import pytest
from examples import Read, fasta_reads, fastq, queries_of, random_bases, random_quality, reads_of
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.alignment import canonical, clean, pack, pack_mask, reverse_complement

from readmap.backend import Backend, open_backend
from readmap.backend.compilation.declarations import constant
from readmap.errors import DataError
from readmap.reads import bad_records
from readmap.reads.bad_records import MAX_READ_LENGTH
from readmap.reads.packing import Queries, pack_queries
from readmap.reads.parsing import Reads, parse_reads

NUCLEOTIDES = "ACGTUNRYKMSWBDHV"
FLIPPED, AMBIGUOUS = 1, 2


def parts(reads: Reads, backend: Backend) -> list[tuple[bytes, bytes, bytes | None]]:
    """Return name, sequence and quality of each record."""
    data = backend.to_host(reads.bytes).tobytes()
    fields = (reads.name_starts, reads.name_lengths, reads.sequence_starts, reads.lengths, reads.quality_starts)
    dtypes = (np.int64, np.int32, np.int64, np.int32, np.int64)
    found = []
    for array, dtype in zip(fields, dtypes, strict=True):
        assert array.dtype == dtype
        assert len(array) == reads.count
    for name, name_length, start, length, quality in zip(*(backend.to_host(f).tolist() for f in fields), strict=True):
        marks = data[quality : quality + length] if quality >= 0 else None
        found.append((data[name : name + name_length], data[start : start + length], marks))
    return found


def parse(data: bytes, backend: Backend, lines: int = 4) -> list[tuple[bytes, bytes, bytes | None]]:
    reads = reads_of(data, backend, lines)
    assert reads.bad is None
    assert reads.count == data.count(b"\n") // lines
    return parts(reads, backend)


# Positions of a record's parts.


def test_fastq(backends: str) -> None:
    data = b"@one\nACGT\n+\nIIII\n@two 1:N:0\nacgtn\n+two\n!~@+I\n@three\tx\nN\n+\n@\n"
    expected = [(b"one", b"ACGT", b"IIII"), (b"two", b"acgtn", b"!~@+I"), (b"three", b"N", b"@")]
    assert parse(data, open_backend(backends)) == expected
    assert parse(data.replace(b"\n", b"\r\n"), open_backend(backends)) == expected


@pytest.mark.parametrize(
    ("header", "name"),
    [
        *(("r", "r"), ("r/1", "r"), ("r/2", "r"), ("r/3", "r/3"), ("r/1/2", "r/1"), ("r/12", "r/12"), ("r 1", "r")),
        *(("r/1 x/2", "r"), ("r/2\tx", "r"), ("r x/1", "r"), ("/1", "/1"), ("1/1", "1")),
        *(("!~?A", "!~?A"), ("n" * 254, "n" * 254), ("n" * 254 + "/1", "n" * 254), ("n" * 254 + " x", "n" * 254)),
    ],
    ids=lambda text: f"{text[:8]!a}..{len(text)}",
)
def test_names(backends: str, header: str, name: str) -> None:
    data = f"@{header}\nA\n+\nI\n@next\nC\n+\nJ\n".encode()
    expected = [(name.encode(), b"A", b"I"), (b"next", b"C", b"J")]
    assert parse(data, open_backend(backends)) == expected
    assert parse(data.replace(b"\n", b"\r\n"), open_backend(backends)) == expected


@pytest.mark.parametrize(
    "name", ["", " r", "\tr", "@r", "r@", "\0", "r\0", "r\x7f", "r\u00e9", "n" * 255, f"{'n' * 255}/1"]
)
def test_names_that_sam_does_not_allow(backends: str, name: str) -> None:
    data = f"@good\nA\n+\nI\n@{name}\nA\n+\nI\n".encode()
    reads = parse_reads(open_backend(backends).to_device(np.frombuffer(data, np.uint8)), 2, 4, open_backend(backends))
    assert reads.bad == (1, bad_records.NOT_A_NAME)
    found = re.split("[ \t]", name)[0]
    complaint = str(bad_records.describe(np.frombuffer(data, np.uint8), 1, bad_records.NOT_A_NAME, 4, "x.fq", 2))
    expected = "x.fq, record 2: expected a name of 1 to 254 characters from '!' to '~' without '@', found "
    assert complaint.startswith(expected)
    assert complaint.endswith("none") if not found else complaint.endswith("'")


@pytest.mark.parametrize(("again", "is_good"), [("", True), ("r", True), ("r x", True), ("s", False), ("rr", False)])
def test_name_after_plus(backends: str, again: str, is_good: bool) -> None:
    data = np.frombuffer(f"@r x\nA\n+{again}\nI\n".encode(), np.uint8)
    reads = parse_reads(open_backend(backends).to_device(data), 1, 4, open_backend(backends))
    assert reads.bad == (None if is_good else (0, bad_records.OTHER_NAME))
    if not is_good:
        complaint = str(bad_records.describe(data, 0, bad_records.OTHER_NAME, 4, "x.fq", 1))
        assert complaint == f"x.fq, record 1 (r): expected nothing or the read name after '+', found {again!r}"


def test_qualities_that_look_like_headers(backends: str) -> None:
    data = b"@a\nACGT\n+a\n@@@@\n@b\nACG\n+\n+++\n@+\nA\n++\n>\n"
    expected = [(b"a", b"ACGT", b"@@@@"), (b"b", b"ACG", b"+++"), (b"+", b"A", b">")]
    assert parse(data, open_backend(backends)) == expected


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    records=st.lists(
        st.tuples(st.text("abc/12:", min_size=1, max_size=12), st.text(NUCLEOTIDES + NUCLEOTIDES.lower(), max_size=60)),
        min_size=1,
        max_size=200,
    ),
    returns=st.booleans(),
    with_quality=st.booleans(),
)
def test_any_records(backends: str, records: list[tuple[str, str]], returns: bool, with_quality: bool) -> None:
    """Also records that span several slices."""
    reads = [Read(name, bases, "I" * len(bases)) for name, bases in records]
    data = fastq(reads) if with_quality else fasta_reads(reads)
    found = parse(data.replace(b"\n", b"\r\n") if returns else data, open_backend(backends), 4 if with_quality else 2)
    for (name, bases), (found_name, found_bases, quality) in zip(records, found, strict=True):
        stripped = name[:-2] if len(name) > 2 and name.endswith(("/1", "/2")) else name
        assert found_name.decode() == stripped
        assert found_bases.decode() == bases
        assert quality == (b"I" * len(bases) if with_quality else None)


@pytest.mark.parametrize("shift", [0, 1, 2, 3, 5])
def test_records_across_slices(backends: str, shift: int) -> None:
    """Newlines on both sides of a slice's end, and whole slices without a newline."""
    generator = random.Random(shift)
    block = constant("reads/parsing.cu", "SLICE_BYTES")
    lengths = [block - 8 - shift, block - 9, MAX_READ_LENGTH, 0, 1, MAX_READ_LENGTH - 1, 0]
    lengths += [*([1] * 2_000), 2 * block - 1]
    reads = [Read(str(i), random_bases(generator, n), random_quality(generator, n)) for i, n in enumerate(lengths)]
    found = parse(fastq(reads), open_backend(backends))
    assert found == [(r.name.encode(), r.bases.encode(), (r.quality or "").encode()) for r in reads]


def test_wrong_number_of_lines(backends: str) -> None:
    backend = open_backend(backends)
    data = backend.to_device(np.frombuffer(b"@a\nA\n+\nI\n", np.uint8))
    with pytest.raises(AssertionError, match="a chunk of 2 records has 4 lines"):
        parse_reads(data, 2, 4, backend)


# Invalid records.

BAD_RECORDS = [
    (b"a\nACGT\n+\nIIII\n", bad_records.NO_HEADER, ": expected a header starting with '@', found 'a'"),
    (b"\nACGT\n+\nIIII\n", bad_records.NO_HEADER, ": expected a header starting with '@', found an empty line"),
    (b">a\nACGT\n+\nIIII\n", bad_records.NO_HEADER, ": expected a header starting with '@', found '>a'"),
    (b"@a b\nACGT\n-\nIIII\n", bad_records.NO_SEPARATOR, " (a): expected a line starting with '+', found '-'"),
    (b"@a\nACGT\n\nIIII\n", bad_records.NO_SEPARATOR, " (a): expected a line starting with '+', found an empty line"),
    (b"@a\nACGT\n+\nIII\n", bad_records.QUALITY_LENGTH, " (a): quality has 3 characters, sequence has 4"),
    (b"@a\nACGT\n+\nIIIII\n", bad_records.QUALITY_LENGTH, " (a): quality has 5 characters, sequence has 4"),
    (b"@a\nACGT\n+\n\n", bad_records.QUALITY_LENGTH, " (a): quality has 0 characters, sequence has 4"),
    (b"@a\n\n+\nI\n", bad_records.QUALITY_LENGTH, " (a): quality has 1 characters, sequence has 0"),
    (b"@a\nACXT\n+\nIIII\n", bad_records.NOT_A_BASE, " (a): expected a nucleotide at base 3, found 'X'"),
    (b"@a\nACG \n+\nIIII\n", bad_records.NOT_A_BASE, " (a): expected a nucleotide at base 4, found ' '"),
    (b"@\nA.GT\n+\nIIII\n", bad_records.NOT_A_BASE, " (unnamed): expected a nucleotide at base 2, found '.'"),
    (b"@a\nACGT\n+\nI II\n", bad_records.QUALITY_RANGE, " (a): expected a quality of '!' to '~' at base 2, found ' '"),
    (
        b"@a\n" + b"A" * (MAX_READ_LENGTH + 1) + b"\n+\n" + b"I" * (MAX_READ_LENGTH + 1) + b"\n",
        bad_records.TOO_LONG,
        " (a): the read has 10001 bases; at most 10000 are supported",
    ),
    # Several errors in one record: the smallest code is reported.
    (b"@a\nAC!T\n\nIII\n", bad_records.NO_SEPARATOR, " (a): expected a line starting with '+', found an empty line"),
    (b"@a\nAC!T\n+\nIII\n", bad_records.QUALITY_LENGTH, " (a): quality has 3 characters, sequence has 4"),
]


@pytest.mark.parametrize("returns", [False, True], ids=["LF", "CRLF"])
@pytest.mark.parametrize("before", [0, 1, 300])
@pytest.mark.parametrize(("record", "code", "message"), BAD_RECORDS, ids=range(len(BAD_RECORDS)))
def test_invalid_record(backends: str, record: bytes, code: int, message: str, before: int, returns: bool) -> None:
    """The reads before it are kept; later records, even invalid ones, are ignored."""
    backend = open_backend(backends)
    good = fastq([Read(f"r{i}", "ACGT", "IIII") for i in range(before)])
    data = good + record + b"@b\nACGT\n+\nIIII\nno header\nX\n-\n\n"
    data = data.replace(b"\n", b"\r\n") if returns else data
    reads = reads_of(data, backend)
    assert reads.bad == (before, code)
    assert reads.count == before
    assert parts(reads, backend) == [(b"r%d" % i, b"ACGT", b"IIII") for i in range(before)]
    error = bad_records.describe(np.frombuffer(data, np.uint8), before, code, 4, "reads.fq", before + 1)
    assert isinstance(error, DataError)
    assert str(error) == f"reads.fq, record {before + 1}{message}"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b"@a\nACGT\n", "reads.fa, record 2: expected a header starting with '>', found '@a'"),
        (b">a\nAC>T\n", "reads.fa, record 2 (a): expected a nucleotide at base 3, found '>'"),
        (
            b">a\n" + b"C" * 20_000 + b"\n",
            "reads.fa, record 2 (a): the read has 20000 bases; at most 10000 are supported",
        ),
    ],
)
def test_invalid_fasta_record(backends: str, record: bytes, message: str) -> None:
    data = b">r\nACGT\n" + record + b">b\nACGT\n"
    reads = reads_of(data, open_backend(backends), 2)
    assert reads.count == 1
    assert reads.bad is not None
    error = bad_records.describe(np.frombuffer(data, np.uint8), 1, reads.bad.code, 2, "reads.fa", 2)
    assert str(error) == message


def test_first_of_many_invalid_records_is_reported(backends: str) -> None:
    """Whichever thread finds it, although later records have smaller codes."""
    backend = open_backend(backends, 4)
    records = [b"@r\nACGT\n+\nIIII\n"] * 2_000
    records[1_203] = b"@r\nACGT\n+\nIII\x01\n"
    for i in range(1_204, 2_000, 3):
        records[i] = b"r\nACGT\n+\nIIII\n"
    reads = reads_of(b"".join(records), backend)
    assert (reads.count, reads.bad) == (1_203, (1_203, bad_records.QUALITY_RANGE))


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (b"@a\nAC%cGT\n+\nIIIII\n", bad_records.NOT_A_BASE, "at base 3, found"),
        (b"@a\nACG\n+\nI%cI\n", bad_records.QUALITY_RANGE, "at base 2, found"),
    ],
)
def test_every_byte_as_a_base_or_quality(backends: str, text: bytes, code: int, place: str) -> None:
    """Kernel and message agree on which bytes are invalid."""
    backend = open_backend(backends)
    for byte in {*range(256)} - {*b"\n\r"}:
        data = text % byte
        reads = reads_of(data, backend)
        is_base = chr(byte).upper() in NUCLEOTIDES and byte < 128
        if is_base if code == bad_records.NOT_A_BASE else 33 <= byte <= 126:
            assert (reads.count, reads.bad) == (1, None)
            continue
        assert (reads.count, reads.bad) == (0, (0, code))
        message = str(bad_records.describe(np.frombuffer(data, np.uint8), 0, code, 4, "r.fq", 1))
        assert place in message
        assert message.isprintable()


def test_carriage_return_inside_a_line(backends: str) -> None:
    reads = reads_of(b"@a\nAC\rGT\n+\nIIIII\n", open_backend(backends))
    assert reads.bad == (0, bad_records.NOT_A_BASE)


# Packing.


def plane(queries: Queries, slot: int, number: int, backend: Backend) -> list[int]:
    """Return the words of a slot in one of the four planes of its tile."""
    words, offsets = backend.to_host(queries.words), backend.to_host(queries.tile_offsets)
    block, lane = divmod(slot, backend.warp_width)
    planes = words[offsets[block] : offsets[block + 1]].reshape(4, -1, backend.warp_width)
    return [int(word) for word in planes[number, :, lane]]


def check_packed(sequences: list[str], backend: Backend) -> None:
    queries = queries_of(sequences, backend)
    order = backend.to_host(queries.order).tolist()
    assert order == sorted(range(len(sequences)), key=lambda record: len(sequences[record]))
    assert [order[slot] for slot in backend.to_host(queries.slot_of).tolist()] == list(range(len(sequences)))
    assert queries.max_length == max(map(len, sequences))
    lengths = [len(sequences[record]) for record in order]
    assert backend.to_host(queries.lengths).tolist() == lengths
    assert [queries.length_runs.length_of(slot) for slot in range(len(order))] == lengths
    for least in range(queries.max_length + 2):
        assert queries.length_runs.first_slot_of_length(least) == sum(one < least for one in lengths)
    replaced = sum(letter in "RYKMSWBDHV" for bases in sequences for letter in bases.upper())
    assert int(backend.to_host(queries.replaced)[0]) == replaced
    flags = backend.to_host(queries.flags).tolist()
    for slot, record in enumerate(order):
        bases = clean(sequences[record])
        first = canonical(bases)
        block = slot - slot % backend.warp_width
        words = -(-max(len(sequences[other]) for other in order[block : block + backend.warp_width]) // 32) + 1
        assert flags[slot] == FLIPPED * (first != bases) + AMBIGUOUS * ("N" in bases)
        for orientation, letters in enumerate((first, reverse_complement(first))):
            assert plane(queries, slot, orientation, backend) == pack(letters, words)
            assert plane(queries, slot, 2 + orientation, backend) == pack_mask(letters, words)


def interleaved(name: str, lanes: int | None) -> Backend:
    """Return a backend, optionally with another number of interleaved reads."""
    backend = open_backend(name)
    backend.warp_width = lanes or backend.warp_width
    return backend


@pytest.mark.parametrize("lanes", [None, 1, 4, 32])
def test_packed_reads(backends: str, lanes: int | None) -> None:
    generator = random.Random(5)
    lengths = [*range(70), 95, 96, 97, 127, 128, 129, 150, 150, 1_000, 0, 31, 32, 33, MAX_READ_LENGTH]
    generator.shuffle(lengths)
    check_packed([random_bases(generator, length) for length in lengths], interleaved(backends, lanes))


reads = st.text("ACGTN", max_size=100) | st.text("ACGTacgtuU" * 3 + NUCLEOTIDES + NUCLEOTIDES.lower(), max_size=200)


@settings(derandomize=True, max_examples=80, deadline=None)
@given(sequences=st.lists(reads, min_size=1, max_size=40), lanes=st.sampled_from([1, 2, 32]))
def test_any_reads_are_packed(backends: str, sequences: list[str], lanes: int) -> None:
    check_packed(sequences, interleaved(backends, lanes))


@pytest.mark.parametrize("bases", ["", "AT", "ACGT", "ACGTACGT" * 20, "N", "ANT", "AT" * 75, "GAATTC"])
def test_palindromes_are_not_flipped(backends: str, bases: str) -> None:
    assert reverse_complement(bases) == bases
    flags = open_backend(backends).to_host(queries_of([bases], open_backend(backends)).flags)
    assert flags.tolist() == [AMBIGUOUS * ("N" in bases)]


def test_reverse_complements_are_the_same_query(backends: str) -> None:
    """Words, masks and hash, which break ties, are equal; only the flag differs."""
    backend = open_backend(backends)
    generator = random.Random(7)
    sequences = [random_bases(generator, 1 + length, "ACGTACGTN") for length in range(150)]
    here = queries_of(sequences, backend)
    there = queries_of([reverse_complement(bases) for bases in sequences], backend)

    def host(array: Any) -> Any:
        return backend.to_host(array)

    assert np.array_equal(host(here.hashes), host(there.hashes))
    assert np.array_equal(host(here.order), host(there.order))
    differ = [reverse_complement(sequences[record]) != clean(sequences[record]) for record in host(here.order)]
    assert np.array_equal(host(here.flags) ^ host(there.flags), np.array(differ, np.uint8))
    size = int(host(here.tile_offsets)[-1])
    assert np.array_equal(host(here.words)[:size], host(there.words)[:size])


def test_hashes_distinguish_reads(backends: str) -> None:
    generator = random.Random(8)
    sequences = [random_bases(generator, 40) for _ in range(500)] + ["A" * length for length in range(100)]
    hashes = open_backend(backends).to_host(queries_of(sequences, open_backend(backends)).hashes)
    assert len(set(hashes.tolist())) == len(sequences)
    assert hashes.dtype == np.uint64


def test_hashes_do_not_depend_on_the_batch(backends: str) -> None:
    """Nor on the tile, whose longest read determines the number of words."""
    generator = random.Random(9)
    sequences = [random_bases(generator, below) for below in range(0, 300, 7)]
    together = interleaved(backends, 32)
    all_at_once = queries_of(sequences, together)
    by_record = together.to_host(all_at_once.hashes)[together.to_host(all_at_once.slot_of)]
    for bases, expected in zip(sequences, by_record.tolist(), strict=True):
        alone = open_backend(backends)
        assert alone.to_host(queries_of([bases], alone).hashes).tolist() == [expected]


def test_reads_before_an_invalid_one_are_packed(backends: str) -> None:
    backend = open_backend(backends)
    reads = reads_of(b"@a\nACGTACG\n+\nIIIIIII\n@b\nAC\n+\nII\nc\nAA\n+\nII\n", backend)
    assert reads.count == 2
    assert pack_queries(reads, backend).length_runs.lengths.tolist() == [2, 7]
