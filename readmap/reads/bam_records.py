"""BAM records -> text of the primary records as they were sequenced, and the hashes by which mates are matched."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.errors import DataError
from readmap.reads.bad_records import MAX_READ_LENGTH

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

#: The positions of a read in the text: struct ReadSpan of kernels/reads/bam_records.cu.
READ_SPAN = row_dtype("reads/bam_records.cu", "ReadSpan")
SPAN_WORDS = READ_SPAN.itemsize // 8

HAS_QUALITY = constant("reads/bam_records.cu", "HAS_QUALITY")

#: Minimum and maximum size of a record, without the 4 bytes of the size itself.
MIN_SIZE, MAX_SIZE = (constant("reads/bam_records.cu", name) for name in ("MIN_SIZE", "MAX_SIZE"))

FIXED_BYTES = constant("common/bam_fields.cuh", "FIXED_BYTES")

BAD_NAME, BAD_LENGTHS, BAD_CONTIG, BAD_TAG, BAD_LETTER, BAD_QUALITY, LONG_READ = (
    constant("reads/bam_records.cu", name)
    for name in ("BAD_NAME", "BAD_LENGTHS", "BAD_CONTIG", "BAD_TAG", "BAD_LETTER", "BAD_QUALITY", "LONG_READ")
)

#: The argument of KeptTags.of for every tag.
ALL_TAGS = ("*",)

_FIND, _CHECK = Kernel("reads/bam_records", "find_records"), Kernel("reads/bam_records", "check_records")
_WRITE, _COPY = Kernel("reads/bam_records", "write_reads"), Kernel("reads/bam_records", "copy_reads")
_COMPARE = Kernel("reads/bam_records", "compare_mates")


@dataclass(frozen=True)
class KeptTags:
    """The tags to write after a read's name: struct KeptTags of kernels/reads/bam_records.cu."""

    names: Bytes
    count: int
    all: bool

    @classmethod
    def of(cls, tags: Sequence[str]) -> KeptTags:
        """Return the tags of these two-letter names; tags: names, or ALL_TAGS."""
        named = [] if tuple(tags) == ALL_TAGS else list(tags)
        return cls(np.frombuffer("".join(named).encode(), np.uint8), len(named), tuple(tags) == ALL_TAGS)

    def contains(self, name: bytes) -> bool:
        """Return True if the tag is kept."""
        return self.all or any(self.names[2 * i : 2 * i + 2].tobytes() == name for i in range(self.count))


@dataclass(frozen=True)
class BamRecords:
    """Complete, valid records.

    Attributes:
        bytes: uint8, the text of BAM; starts: int64 [records + 1], where each record starts, and the end of the last
            one.
        flags: uint16 [records].
        hashes: uint64 [records], of name and read group.
        lengths: int64 [records], bytes that a primary record has as text, 0 for other records.
        error: name and description of the next record if it is invalid, else None.
    """

    bytes: Bytes
    starts: Integers
    flags: NDArray[np.uint16]
    hashes: NDArray[np.uint64]
    lengths: Integers
    error: str | None

    def __len__(self) -> int:
        return len(self.flags)


@dataclass(frozen=True)
class ReadTexts:
    """Reads as text.

    Attributes:
        text: uint8. spans: READ_SPAN [reads], the positions of each read in the text.
        lengths: int64 [reads], bytes of each read.
    """

    text: Bytes
    spans: NDArray[Any]
    lengths: Integers

    def select(self, rows: Integers) -> ReadTexts:
        """Return the reads of these rows."""
        return ReadTexts(self.text, as_spans(as_words(self.spans)[rows]), self.lengths[rows])

    def copy_into(self, target: Bytes, offset: int, backend: Backend) -> ReadTexts:
        """Copy the reads to contiguous text in `target` from `offset` on, and return them there."""
        starts = np.cumsum(self.lengths) - self.lengths + offset
        backend.launch(
            _COPY,
            len(starts),
            bytes=self.text,
            starts=np.ascontiguousarray(self.spans["start"]),
            lengths=self.lengths,
            new_starts=starts,
            text=target,
        )
        spans = self.spans.copy()
        spans["start"] = starts
        return ReadTexts(target, spans, self.lengths)

    def keys(self) -> list[bytes]:
        """Return name and read group of each read, which mates have in common."""
        return [self._key(span) for span in self.spans]

    def _key(self, span: Any) -> bytes:
        start, size = int(span["start"]), int(span["group_length"])
        name = self.text[start : start + int(span["name_length"])].tobytes()
        if size < 0:
            return name
        group = start + int(span["header_length"]) + int(span["length"]) * (1 + bool(span["marks"] & HAS_QUALITY))
        return name + b"\0" + self.text[group : group + size].tobytes()


def as_words(spans: NDArray[Any]) -> Integers:
    """View READ_SPAN [reads] as int64 [reads, SPAN_WORDS], which kernels take and NumPy indexes faster."""
    return spans.view(np.int64).reshape(-1, SPAN_WORDS)


def as_spans(words: Integers) -> NDArray[Any]:
    """View int64 [reads, SPAN_WORDS] as READ_SPAN [reads]."""
    spans: NDArray[Any] = words.view(READ_SPAN).reshape(-1)
    return spans


def find_records(data: Bytes, max_records: int, backend: Backend) -> tuple[Integers, int]:
    """Find the complete records at the front of `data`.

    Returns int64 [records + 1], the start of each record and the end of the last record; and that end.
    """
    max_records = min(max_records, len(data) // (MIN_SIZE + 4))
    starts, found = np.empty(max_records, np.int64), np.zeros(2, np.int64)
    backend.launch(_FIND, 1, bytes=data, starts=starts, found=found, size=len(data), max_records=max_records)
    count, end = found.tolist()
    return np.append(starts[:count], end), end


def describe_invalid_size(data: Bytes) -> str | None:
    """Return what is wrong with the size of the record at the front of `data`; None if it is valid or incomplete."""
    if len(data) < 4:
        return None
    size = int(data[:4].view(np.int32)[0])
    if MIN_SIZE <= size <= MAX_SIZE:
        return None
    return f"expected a size of {MIN_SIZE} to {MAX_SIZE} bytes, found {size}"


def check_records(data: Bytes, starts: Integers, kept: KeptTags, contigs: int, backend: Backend) -> BamRecords:
    """Return the records before the first invalid one.

    starts: from find_records. contigs: number of contigs in the header.
    """
    count = len(starts) - 1
    flags, hashes = np.empty(count, np.uint16), np.empty(count, np.uint64)
    lengths, error = np.empty(count, np.int64), np.full(1, -1, np.int64).view(np.uint64)
    backend.launch(
        _CHECK,
        count,
        bytes=data,
        starts=starts,
        kept=kept,
        flags=flags,
        hashes=hashes,
        lengths=lengths,
        error=error,
        contigs=contigs,
        max_read_length=MAX_READ_LENGTH,
    )
    bad, code = int(error[0]) >> 8, int(error[0]) & 255
    if bad >= count:
        return BamRecords(data, starts, flags, hashes, lengths, None)
    record = data[starts[bad] : starts[bad + 1]].tobytes()
    description = f"({name_of(record)}): {describe(record, code, kept, contigs)}"
    return BamRecords(data, starts[: bad + 1], flags[:bad], hashes[:bad], lengths[:bad], description)


def write_reads(records: BamRecords, selected: Integers, kept: KeptTags, text: Bytes, backend: Backend) -> ReadTexts:
    """Write primary records to the front of `text`. selected: int64, their indices."""
    lengths = records.lengths[selected]
    rows = np.empty((len(selected), SPAN_WORDS), np.int64)
    backend.launch(
        _WRITE,
        len(selected),
        bytes=records.bytes,
        starts=records.starts,
        selected=selected,
        text_ends=np.cumsum(lengths),
        kept=kept,
        text=text,
        spans=rows,
    )
    return ReadTexts(text, as_spans(rows), lengths)


def compare_mates(
    first: ReadTexts, first_rows: Integers, second: ReadTexts, second_rows: Integers, backend: Backend
) -> Bytes:
    """Return uint8 [pairs], 1 for pairs of rows with the same name and read group."""
    same = np.empty(len(first_rows), np.uint8)
    backend.launch(
        _COMPARE,
        len(first_rows),
        first_text=first.text,
        first_spans=as_words(first.spans)[first_rows],
        second_text=second.text,
        second_spans=as_words(second.spans)[second_rows],
        same=same,
    )
    return same


def name_of(record: bytes) -> str:
    """Return the name of a record for messages, even if the record is invalid."""
    size = record[12] if len(record) > FIXED_BYTES else 0
    name = record[FIXED_BYTES : FIXED_BYTES + size].split(b"\0")[0]
    return name.decode("ascii", "backslashreplace") or "unnamed"


def describe(record: bytes, code: int, kept: KeptTags, contigs: int) -> str:
    """Return what is expected of a record and what was found. code: a BamError of kernels/reads/bam_records.cu."""
    contig, size, operations, length, mate_contig = struct.unpack_from("<i4xB3xH2xii", record, 4)
    bases = FIXED_BYTES + size + 4 * operations
    qualities = bases + (length + 1) // 2
    if code == BAD_NAME:
        name = record[FIXED_BYTES : FIXED_BYTES + size]
        return f"expected a name from '!' to '~' without '@', followed by a NUL, found {name[:30]!r}"
    if code == BAD_LENGTHS:
        if length < 0:
            return f"expected a base count of 0 or more, found {length}"
        needed = qualities + length
        return f"expected {needed} bytes of name, CIGAR, {length} bases and qualities, found {len(record)}"
    if code == BAD_CONTIG:
        return f"expected contigs of -1 to {contigs - 1}, found {contig} and {mate_contig}"
    if code == LONG_READ:
        return f"the read has {length} bases; at most {MAX_READ_LENGTH} are supported"
    if code == BAD_LETTER:
        position = next(i for i in range(length) if not record[bases + i // 2] >> (0 if i % 2 else 4) & 15)
        return f"expected a nucleotide at base {position + 1}, found '='"
    if code == BAD_QUALITY:
        position = next(i for i, phred in enumerate(record[qualities : qualities + length]) if phred > 93)
        return f"expected a quality of 0 to 93 at base {position + 1}, found {record[qualities + position]}"
    return _describe_tag(record, qualities + length, kept)


def _describe_tag(record: bytes, at: int, kept: KeptTags) -> str:
    """Describe the first tag that is invalid, or that is kept and cannot be written as SAM."""
    number = 1
    expected = "a tag of the type A, c, C, s, S, i, I, f, Z, H or B whose value ends within the record"
    while at < len(record):
        value = at + 3
        size = _value_bytes(record, value - 1)
        if size is None:
            break
        text = record[at : value + size]
        if kept.contains(text[:2]) and not _is_writable(text):
            expected = "a tag that SAM can represent"
            break
        at, number = value + size, number + 1
    return f"expected {expected}, found {record[at : at + 30]!r} as tag {number}"


_SIZES = {b"A": 1, b"c": 1, b"C": 1, b"s": 2, b"S": 2, b"i": 4, b"I": 4, b"f": 4, b"d": 8}


def _value_bytes(record: bytes, at: int) -> int | None:
    """Return the size of the value after the type at `at`; None if it is invalid or exceeds the record."""
    kind, left = record[at : at + 1], len(record) - at - 1
    if kind in (b"Z", b"H"):
        end = record.find(b"\0", at + 1)
        return None if end < 0 else end - at
    if kind == b"B":
        element = _SIZES.get(record[at + 1 : at + 2], 0)
        if left < 5 or not element or record[at + 1 : at + 2] in (b"A", b"d"):
            return None
        size = 5 + element * int(struct.unpack_from("<I", record, at + 2)[0])
    else:
        size = _SIZES.get(kind, left + 1)
    return size if size <= left else None


def _is_writable(tag: bytes) -> bool:
    """Return True if SAM can represent the tag; same rules as is_writable in kernels/reads/bam_records.cu."""
    name, kind, value = tag[:2].decode("latin-1"), tag[2:3], tag[3:]
    if not (name.isascii() and name[0].isalpha() and name.isalnum()) or kind == b"d":
        return False
    if kind == b"H":
        return len(value) % 2 == 1 and all(byte in b"0123456789ABCDEF" for byte in value[:-1])
    if kind in (b"A", b"Z"):
        text = value.removesuffix(b"\0") if kind == b"Z" else value
        return all(32 <= byte <= 126 for byte in text) and (kind == b"Z" or text != b" ")
    return True


def read_header(read: Callable[[int], bytes], name: str) -> tuple[list[tuple[str, int]], bytes]:
    """Return names and lengths of the contigs of a BAM header, and the header's text.

    read: returns the next bytes of BAM, of the given size or less at the end. name: the file's name, for messages.
    Raises DataError if the header is invalid.
    """

    def number(what: str, minimum: int) -> int:
        data = read(4)
        value = struct.unpack("<i", data)[0] if len(data) == 4 else None
        if value is None or value < minimum:
            found = f"{value}" if value is not None else "the end of the data"
            raise DataError(f"{name}: invalid BAM header: expected {what}, found {found}")
        return int(value)

    def text_of(what: str, length: int) -> bytes:
        data = read(length)
        if len(data) < length:
            found = f"the end of the data after {len(data)}"
            raise DataError(f"{name}: invalid BAM header: expected {what} of {length} bytes, found {found}")
        return data

    text_of("its magic", 4)
    text = text_of("a text", number("the length of its text", 0))
    count, contigs = number("a contig count", 0), []
    for contig in range(1, count + 1):
        title = text_of(f"the name of contig {contig}", number(f"the length of the name of contig {contig}", 1))
        if not title.endswith(b"\0"):
            raise DataError(f"{name}: invalid BAM header: expected a NUL after the name of contig {contig}")
        contigs.append((title[:-1].decode("utf-8", "surrogateescape"), number(f"the length of contig {contig}", 0)))
    return contigs, text.split(b"\0")[0]
