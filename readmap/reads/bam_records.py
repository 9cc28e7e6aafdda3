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

ALL_TAGS = ("*",)  # the argument of KeptTags.of for every tag
_FIND, _CHECK = Kernel("reads/bam_records", "find_records"), Kernel("reads/bam_records", "check_records")
_WRITE, _COPY = Kernel("reads/bam_records", "write_reads"), Kernel("reads/bam_records", "copy_reads")
_COMPARE, _FIND_BAD_TAG = Kernel("reads/bam_records", "compare_mates"), Kernel("reads/bam_records", "find_bad_tag")


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


@dataclass(frozen=True)
class BamRecords:
    """Complete, valid records; all arrays but `bytes` and `starts` are [records]."""

    bytes: Bytes  # the text of BAM
    starts: Integers  # [records + 1], where each record starts, and the end of the last record
    flags: NDArray[np.uint16]
    hashes: NDArray[np.uint64]  # of name and read group
    lengths: Integers  # bytes that a primary record has as text, 0 for other records
    error: str | None  # name and description of the next record if it is invalid

    def __len__(self) -> int:
        return len(self.flags)


@dataclass(frozen=True)
class ReadTexts:
    """Reads as text."""

    text: Bytes
    spans: NDArray[Any]  # READ_SPAN [reads], the positions of each read in the text
    lengths: Integers  # [reads], bytes of each read

    def select(self, rows: Integers) -> ReadTexts:
        return ReadTexts(self.text, as_spans(as_words(self.spans)[rows]), self.lengths[rows])

    def copy_into(self, target: Bytes, offset: int, backend: Backend) -> ReadTexts:
        """Copy the reads without gaps into `target` from `offset` on; return them with their new positions."""
        starts = np.cumsum(self.lengths) - self.lengths + offset
        read = {"bytes": self.text, "starts": np.ascontiguousarray(self.spans["start"]), "lengths": self.lengths}
        backend.launch(_COPY, len(starts), **read, new_starts=starts, text=target)
        spans = self.spans.copy()
        spans["start"] = starts
        return ReadTexts(target, spans, self.lengths)

    def keys(self) -> list[bytes]:
        """Return name and read group of each read, which mates have in common."""

        def key(span: Any) -> bytes:
            start, size = int(span["start"]), int(span["group_length"])
            name = self.text[start : start + int(span["name_length"])].tobytes()
            group = start + int(span["header_length"]) + int(span["length"]) * (1 + bool(span["marks"] & HAS_QUALITY))
            return name if size < 0 else name + b"\0" + self.text[group : group + size].tobytes()

        return [key(span) for span in self.spans]


def as_words(spans: NDArray[Any]) -> Integers:
    """View READ_SPAN [reads] as int64 [reads, SPAN_WORDS], which kernels take and NumPy indexes faster."""
    return spans.view(np.int64).reshape(-1, SPAN_WORDS)


def as_spans(words: Integers) -> NDArray[Any]:
    """View int64 [reads, SPAN_WORDS] as READ_SPAN [reads]."""
    return words.view(READ_SPAN).reshape(-1)


def find_records(data: Bytes, max_records: int, backend: Backend) -> tuple[Integers, int]:
    """Return where the complete records of `data` start and the last record ends, int64 [records + 1]; and that end."""
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
    """Return the records before the first invalid one, and its error. starts: from find_records. contigs: count."""
    count = len(starts) - 1
    flags, hashes, lengths = np.empty(count, np.uint16), np.empty(count, np.uint64), np.empty(count, np.int64)
    error = np.full(1, -1, np.int64).view(np.uint64)
    outputs = {"flags": flags, "hashes": hashes, "lengths": lengths, "error": error}
    limits = {"contigs": contigs, "max_read_length": MAX_READ_LENGTH}
    backend.launch(_CHECK, count, bytes=data, starts=starts, kept=kept, **outputs, **limits)
    bad, code = int(error[0]) >> 8, int(error[0]) & 255
    if bad >= count:
        return BamRecords(data, starts, flags, hashes, lengths, None)
    record = data[starts[bad] : starts[bad + 1]].tobytes()
    description = f"({name_of(record)}): {describe(record, code, kept, contigs, backend)}"
    return BamRecords(data, starts[: bad + 1], flags[:bad], hashes[:bad], lengths[:bad], description)


def write_reads(records: BamRecords, selected: Integers, kept: KeptTags, text: Bytes, backend: Backend) -> ReadTexts:
    """Write the primary records with the indices `selected` as text to the front of `text`; return the reads there."""
    lengths, rows = records.lengths[selected], np.empty((len(selected), SPAN_WORDS), np.int64)
    read = {"bytes": records.bytes, "starts": records.starts, "selected": selected}
    backend.launch(_WRITE, len(rows), **read, text_ends=np.cumsum(lengths), kept=kept, text=text, spans=rows)
    return ReadTexts(text, as_spans(rows), lengths)


def compare_mates(
    first: ReadTexts, first_rows: Integers, second: ReadTexts, second_rows: Integers, backend: Backend
) -> Bytes:
    """Return uint8 [pairs], 1 for pairs of rows with the same name and read group."""
    same, texts = np.empty(len(first_rows), np.uint8), {"first_text": first.text, "second_text": second.text}
    first_spans, second_spans = as_words(first.spans)[first_rows], as_words(second.spans)[second_rows]
    backend.launch(_COMPARE, len(same), **texts, first_spans=first_spans, second_spans=second_spans, same=same)
    return same


def name_of(record: bytes) -> str:
    """Return the name of a record for messages, even if the record is invalid."""
    size = record[12] if len(record) > FIXED_BYTES else 0
    name = record[FIXED_BYTES : FIXED_BYTES + size].split(b"\0")[0]
    return name.decode("ascii", "backslashreplace") or "unnamed"


def describe(record: bytes, code: int, kept: KeptTags, contigs: int, backend: Backend) -> str:
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
    found = np.empty(3, np.int64)
    arguments = {"bytes": np.frombuffer(record, np.uint8), "size": len(record), "kept": kept, "found": found}
    backend.launch(_FIND_BAD_TAG, 1, **arguments)
    at, index, is_invalid = found.tolist()
    typed = "of the type A, c, C, s, S, i, I, f, Z, H or B whose value ends within the record"
    expected = typed if is_invalid else "that SAM can represent"
    return f"expected a tag {expected}, found {record[at : at + 30]!r} as tag {index + 1}"


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
