"""The bytes of a chunk, or Python's sequences -> Reads: where the parts of each record lie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.errors import DataError
from readmap.reads import bad_records
from readmap.reads.bad_records import MAX_READ_LENGTH, BadRecord
from readmap.reads.chunks import PairLayout

_BLOCK_BYTES = constant("reads/parsing.cu", "BLOCK_BYTES")

#: Of the marks of a read: it stands for the mate that a single read does not have.
READ_ABSENT = constant("reads/queries.cuh", "READ_ABSENT")

#: Of Python: a sequence, its qualities or its name.
Text = str | bytes | bytearray | memoryview

#: One of them, or any number.
Texts = Text | Iterable[Text]

_COUNT = Kernel("reads/parsing", "count_newlines")
_FIND = Kernel("reads/parsing", "find_newlines")
_PARSE = Kernel("reads/parsing", "parse_records")
_COMPARE_NAMES = Kernel("reads/parsing", "compare_names")
_CHECK_COMMENTS = Kernel("reads/parsing", "check_comments")


@dataclass(frozen=True)
class Reads:
    """The records of a batch, in the order of the input, as places in its bytes; mates are records 2i and 2i + 1.

    Attributes:
        bytes: uint8 [nbytes] on the device.
        name_starts: int64 [reads]; name_lengths: int32 [reads], without /1 and /2.
        sequence_starts: int64 [reads]; lengths: int32 [reads], bases.
        quality_starts: int64 [reads], -1 where a read has no qualities.
        marks: uint8 [reads], of kernels/reads/queries.cuh: READ_ABSENT of what stands for the mate of a single read
            among pairs, READ_FAILED of what failed the sequencer's checks.
        count: reads in front of the first bad record, or of the first pair that is not good.
        bad: that record; None where all are good.
        paired: whether reads have mates.
        has_singles: whether some of those mates are absent.
        lane: the number of the files that they come from, as Chunk has it.
    """

    bytes: Array
    name_starts: Array
    name_lengths: Array
    sequence_starts: Array
    lengths: Array
    quality_starts: Array
    marks: Array
    count: int
    bad: BadRecord | None
    paired: bool
    has_singles: bool = False
    lane: int = 0

    @property
    def together(self) -> int:
        """Records that are not divided: a read, or a pair."""
        return 2 if self.paired else 1

    def halves(self) -> tuple[Reads, Reads]:
        """The same records in two parts, of which neither is empty where there is more than `together`."""
        middle = self.count // self.records_per_fragment // 2 * self.records_per_fragment
        return self.part(0, middle), self.part(middle, self.count)

    def part(self, first: int, last: int) -> Reads:
        """The records [first, last) alone."""
        return replace(self, count=last - first, **{name: getattr(self, name)[first:last] for name in BY_RECORD})


#: The arrays of Reads that have an element a record, and those of them that its text tells.
_PARSED = ("name_starts", "name_lengths", "sequence_starts", "lengths", "quality_starts")
BY_RECORD = (*_PARSED, "marks")


def parse_reads(
    data: Array, records: int, lines_a_record: int, backend: Backend, layout: PairLayout = PairLayout.SINGLE
) -> Reads:
    """The places of all records in a chunk's bytes, uint8 [nbytes] on the device.

    Those of two files lie behind each other, half of the records each.
    """
    blocks = -(-len(data) // _BLOCK_BYTES)
    counts = backend.empty(blocks, np.int64)
    backend.launch(_COUNT, blocks, bytes=data, counts=counts, size=len(data))
    ends, lines = backend.inclusive_sum_with_total(counts)
    line_ends = backend.empty(lines, np.int64)
    backend.launch(_FIND, blocks, bytes=data, ends=ends, line_ends=line_ends, size=len(data))
    if lines != records * lines_a_record:
        raise AssertionError(f"a chunk of {records} records has {lines} lines")
    error = backend.full(1, -1, np.int64).view(np.uint64)
    reads = Reads(
        data,
        backend.empty(records, np.int64),
        backend.empty(records, np.int32),
        backend.empty(records, np.int64),
        backend.empty(records, np.int32),
        backend.empty(records, np.int64),
        backend.full(records, 0, np.uint8),
        records,
        None,
        layout.alternates,
    )
    backend.launch(
        _PARSE,
        records,
        bytes=data,
        line_ends=line_ends,
        **{name: getattr(reads, name) for name in _PARSED},
        error=error,
        lines_a_record=lines_a_record,
        longest_read=MAX_READ_LENGTH,
        records=records,
        files=layout.files,
    )
    if layout.alternates:
        names = {"name_starts": reads.name_starts, "name_lengths": reads.name_lengths}
        backend.launch(_COMPARE_NAMES, records // 2, bytes=data, **names, error=error)
    return _before_error(reads, error, backend)


def check_comments(reads: Reads, backend: Backend) -> Reads:
    """The reads in front of the first whose comment, behind its name, is no list of SAM tags, nor Illumina's.

    Of these some say that a read failed the sequencer's checks: then its mark does too.
    """
    if not reads.count:
        return reads
    error = backend.full(1, -1, np.int64).view(np.uint64)
    given = {"bytes": reads.bytes, "name_starts": reads.name_starts, "marks": reads.marks}
    backend.launch(_CHECK_COMMENTS, reads.count, **given, error=error)
    return _before_error(reads, error, backend)


def _before_error(reads: Reads, error: Array, backend: Backend) -> Reads:
    """The reads in front of the first bad one, or of its pair; later stages see no others."""
    found = int(backend.to_host(error)[0])
    if found == 2**64 - 1:
        return reads
    bad = BadRecord(found >> 8, found & 255)
    count = bad.place - bad.place % 2 if reads.paired else bad.place
    return replace(reads.part(0, count), bad=bad)


def absent_mask(reads: Reads, backend: Backend) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of the reads are absent, bool [reads] on the host."""
    if not reads.has_singles:
        return np.zeros(reads.count, np.bool_)
    absent: np.ndarray[Any, np.dtype[np.bool_]] = (backend.to_host(reads.marks) & READ_ABSENT) > 0
    return absent


def read_names(reads: Reads, backend: Backend) -> list[str]:
    """The names of all reads, up to the first blank and without /1 and /2."""
    starts, lengths, text = map(backend.to_host, (reads.name_starts, reads.name_lengths, reads.bytes))
    data = text.tobytes()
    places = zip(starts.tolist(), lengths.tolist(), strict=True)
    return [data[start : start + length].decode("ascii", "replace") for start, length in places]


def reads_from_sequences(
    sequences: Texts, qualities: Texts | None, backend: Backend, names: Texts | None = None
) -> tuple[Reads, int]:
    """Reads, and how many there are: none at all become one empty read, since a batch has at least one.

    names: each up to its first blank; without them the reads have none.
    Raises DataError naming the sequence, from 1, where one holds what is no nucleotide or is too long, or where its
    name or qualities are missing, or qualities of another length.
    """
    records = {"sequences": _records(sequences, qualities, names)}
    return _reads_of_records(records, qualities is not None, backend)


def reads_from_pairs(
    first: Texts,
    second: Texts,
    first_qualities: Texts | None,
    second_qualities: Texts | None,
    backend: Backend,
    names: Texts | None = None,
) -> tuple[Reads, int]:
    """The reads of pairs, and how many pairs there are: none at all become one pair of empty reads.

    names: one a pair. Raises DataError as `reads_from_sequences` does, and where a mate or the qualities of one are
    missing.
    """
    if (first_qualities is None) != (second_qualities is None):
        raise DataError("expected qualities of both mates or of neither")
    titles = None if names is None else list(_several(names))
    records = {"first": _records(first, first_qualities, titles), "second": _records(second, second_qualities, titles)}
    _expect_as_many("second mates", records["second"], "first ones", records["first"])
    return _reads_of_records(records, first_qualities is not None, backend)


def _records(sequences: Texts, qualities: Texts | None, names: Texts | None) -> list[bytes]:
    """A record of FASTQ for each sequence; of FASTA where there are no qualities."""
    bases = [_bytes(sequence) for sequence in _several(sequences)]
    titles = [b"*"] * len(bases) if names is None else [_title(name) for name in _several(names)]
    _expect_as_many("names", titles, "sequences", bases)
    if qualities is None:
        return [b">%b\n%b\n" % record for record in zip(titles, bases, strict=True)]
    marks = [_bytes(quality) for quality in _several(qualities)]
    _expect_as_many("qualities", marks, "sequences", bases)
    return [b"@%b\n%b\n+\n%b\n" % record for record in zip(titles, bases, marks, strict=True)]


def _several(texts: Texts) -> Iterable[Text]:
    """One text is the only one, and not its letters one by one."""
    return [texts] if isinstance(texts, Text) else texts


def _expect_as_many(what: str, found: list[bytes], of_what: str, expected: list[bytes]) -> None:
    if len(found) != len(expected):
        raise DataError(f"expected as many {what} as {of_what}, found {len(found)} and {len(expected)}")


def _reads_of_records(records: dict[str, list[bytes]], have_qualities: bool, backend: Backend) -> tuple[Reads, int]:
    """The reads, and how many records there are of a kind. records: of one kind, or of mates; kinds name messages."""
    kinds = list(records)
    count = len(records[kinds[0]])
    lines, empty = (4, b"@*\n\n+\n\n") if have_qualities else (2, b">*\n\n")
    in_turns = [record for mates in zip(*records.values(), strict=True) for record in mates]
    data = np.frombuffer(b"".join(in_turns or [empty] * len(kinds)), np.uint8)
    layout = PairLayout.INTERLEAVED if len(kinds) > 1 else PairLayout.SINGLE
    reads = parse_reads(backend.to_device(data), max(count, 1) * len(kinds), lines, backend, layout)
    if reads.bad is not None:
        place, code = reads.bad
        number, kind = divmod(place, len(kinds))
        raise bad_records.describe(data, place, code, lines, kinds[kind], number + 1)
    return reads, count


def _title(name: Text) -> bytes:
    return b"".join(_encoded(name).split(maxsplit=1)[:1]) or b"*"


def _encoded(text: Text) -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8", "replace")
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(text)
    raise DataError(f"expected str or bytes, found {type(text).__name__}")


def _bytes(text: Text) -> bytes:
    return _encoded(text).translate(_LINE_BREAKS)


#: A line break within a sequence is no base, and none of its quality either: it must not end the record.
_LINE_BREAKS = bytes.maketrans(b"\r\n", b"\x7f\x7f")
