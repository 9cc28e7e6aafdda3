"""The bytes of a chunk, or Python strings -> Reads: the positions of each read's name, sequence and qualities."""

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

_SLICE_BYTES = constant("reads/parsing.cu", "SLICE_BYTES")

#: Mark of the placeholder for the missing mate of a single read.
READ_ABSENT = constant("reads/queries.cuh", "READ_ABSENT")
Text = str | bytes | bytearray | memoryview  # a sequence, its qualities or its name
Texts = Text | Iterable[Text]  # one text or several
_COUNT, _FIND = Kernel("reads/parsing", "count_newlines"), Kernel("reads/parsing", "find_newlines")
_PARSE, _COMPARE_NAMES = Kernel("reads/parsing", "parse_records"), Kernel("reads/parsing", "compare_names")
_CHECK_COMMENTS = Kernel("reads/parsing", "check_comments")
_MARK_SAME_NAMES, _GATHER = Kernel("reads/parsing", "mark_same_names"), Kernel("reads/parsing", "gather_reads")


@dataclass(frozen=True)
class Reads:
    """The reads of a batch in input order, as positions in the batch's bytes; mates are reads 2i and 2i + 1."""

    bytes: Array  # uint8 [nbytes] on the device, like all arrays
    name_starts: Array  # int64 [reads]
    name_lengths: Array  # int32 [reads], without /1 and /2
    sequence_starts: Array  # int64 [reads]
    lengths: Array  # int32 [reads], in bases
    quality_starts: Array  # int64 [reads], -1 if a read has no qualities
    #: uint8 [reads], of kernels/reads/queries.cuh: READ_ABSENT for the placeholder of a missing mate, READ_FAILED for a
    #: read that failed the sequencer's checks.
    marks: Array
    count: int  # reads before the first invalid read or pair
    bad: BadRecord | None  # the first invalid read
    paired: bool  # mates alternate
    has_singles: bool = False  # some mates are absent
    lane: int = 0  # 0-based, as in Chunk

    @property
    def records_per_fragment(self) -> int:
        return 2 if self.paired else 1

    def halves(self) -> tuple[Reads, Reads]:
        """Split into two parts at a fragment; neither is empty if there is more than one fragment."""
        middle = self.count // self.records_per_fragment // 2 * self.records_per_fragment
        return self.part(0, middle), self.part(middle, self.count)

    def part(self, start: int, end: int) -> Reads:
        return replace(self, count=end - start, **{name: getattr(self, name)[start:end] for name in PER_READ})


#: The arrays of Reads with one element per read; _PARSED are parsed from the text.
_PARSED = {
    "name_starts": np.int64,
    "name_lengths": np.int32,
    "sequence_starts": np.int64,
    "lengths": np.int32,
    "quality_starts": np.int64,
}
PER_READ = (*_PARSED, "marks")


def parse_reads(
    data: Array, records: int, lines_per_record: int, backend: Backend, layout: PairLayout = PairLayout.SINGLE
) -> Reads:
    """Return the reads of a chunk's bytes, uint8 [nbytes] on the device, before the first invalid read or pair.

    records: their number; with two files, a half for each. lines_per_record: 4 for FASTQ, 2 for FASTA.
    """
    slices = -(-len(data) // _SLICE_BYTES)
    counts = backend.empty(slices, np.int64)
    backend.launch(_COUNT, slices, bytes=data, counts=counts, size=len(data))
    ends, lines = backend.inclusive_sum_with_total(counts)
    line_ends = backend.empty(lines, np.int64)
    backend.launch(_FIND, slices, bytes=data, ends=ends, line_ends=line_ends, size=len(data))
    if lines != records * lines_per_record:
        raise AssertionError(f"a chunk of {records} records has {lines} lines")
    error = backend.full(1, -1, np.int64).view(np.uint64)
    parsed = {name: backend.empty(records, dtype) for name, dtype in _PARSED.items()}
    arrays = {"bytes": data, "line_ends": line_ends, **parsed, "error": error}
    shape = {"lines_per_record": lines_per_record, "max_read_length": MAX_READ_LENGTH, "files": layout.files}
    backend.launch(_PARSE, records, **arrays, **shape, records=records)
    marks = backend.full(records, 0, np.uint8)
    reads = Reads(data, **parsed, marks=marks, count=records, bad=None, paired=layout.mates_alternate)
    if layout.mates_alternate:
        names = {"name_starts": reads.name_starts, "name_lengths": reads.name_lengths}
        backend.launch(_COMPARE_NAMES, records // 2, bytes=data, **names, error=error)
    return _before_error(reads, error, backend)


def check_comments(reads: Reads, backend: Backend) -> Reads:
    """Return the reads before the first read whose comment is neither SAM tags nor Illumina's.

    A read is marked READ_FAILED if Illumina's comment says that it failed the sequencer's checks.
    """
    if not reads.count:
        return reads
    error = backend.full(1, -1, np.int64).view(np.uint64)
    arrays = {"bytes": reads.bytes, "name_starts": reads.name_starts, "marks": reads.marks}
    backend.launch(_CHECK_COMMENTS, reads.count, **arrays, error=error)
    return _before_error(reads, error, backend)


def pair_adjacent_reads(reads: Reads, backend: Backend) -> Reads:
    """Pair adjacent reads of one name, as bwa mem -p does; all other reads are single and get an absent mate.

        name     A  A  B  C  C  C  D
        pairs    ^--^     ^--^            B, the last C and D are single

    In a run of reads with one name, the mates are the first and second read, the third and fourth, and so on.
    """
    if not reads.count:
        return reads
    same = backend.empty(reads.count, np.uint8)
    names = {"name_starts": reads.name_starts, "name_lengths": reads.name_lengths}
    backend.launch(_MARK_SAME_NAMES, reads.count, bytes=reads.bytes, **names, same=same)
    is_same, indices = backend.to_host(same).astype(np.bool_), np.arange(reads.count)
    run_starts = np.maximum.accumulate(np.where(is_same, -1, indices))
    is_second = (indices - run_starts) % 2 == 1
    firsts = np.flatnonzero(~is_second)
    has_mate = np.append(is_second[1:], False)[firsts]
    slots = np.full(2 * len(firsts), -1)  # -1: an absent mate
    slots[::2] = firsts
    slots[1::2][has_mate] = firsts[has_mate] + 1
    arrays = {name: getattr(reads, name) for name in PER_READ}
    gathered = {name: backend.empty(len(slots), array.dtype) for name, array in arrays.items()}
    targets = {f"new_{name}": array for name, array in gathered.items()}
    backend.launch(_GATHER, len(slots), slots=backend.to_device(slots), **arrays, **targets, reads=reads.count)
    return replace(reads, **gathered, count=len(slots), paired=True, has_singles=not has_mate.all())


def _before_error(reads: Reads, error: Array, backend: Backend) -> Reads:
    """Return the reads before the first invalid read or pair, with its error in `bad`; error: uint64 [1] of kernels."""
    found = int(backend.to_host(error)[0])
    if found == 2**64 - 1:
        return reads
    bad = BadRecord(found >> 8, found & 255)
    count = bad.read - bad.read % 2 if reads.paired else bad.read
    return replace(reads.part(0, count), bad=bad)


def absent_mask(reads: Reads, backend: Backend) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return bool [reads] on the host, True for absent mates."""
    if not reads.has_singles:
        return np.zeros(reads.count, np.bool_)
    return (backend.to_host(reads.marks) & READ_ABSENT) > 0


def read_names(reads: Reads, backend: Backend) -> list[str]:
    """Return the names of all reads, up to the first blank and without /1 and /2."""
    starts, lengths, text = map(backend.to_host, (reads.name_starts, reads.name_lengths, reads.bytes))
    data = text.tobytes()
    spans = zip(starts.tolist(), lengths.tolist(), strict=True)
    return [data[start : start + length].decode("ascii", "replace") for start, length in spans]


def reads_from_sequences(
    sequences: Texts, qualities: Texts | None, backend: Backend, names: Texts | None = None
) -> tuple[Reads, int]:
    """Return reads and their number. No sequence gives one empty read and the number 0, since a batch has a read.

    names: only the part before the first blank is used; by default reads are unnamed.
    Raises DataError, naming the sequence by its 1-based index, if a sequence has a letter that is not a nucleotide or
    is too long, if its name or qualities are missing, or if the qualities have another length.
    """
    records = {"sequences": _as_records(sequences, qualities, names)}
    return _reads_of_records(records, qualities is not None, backend)


def reads_from_pairs(
    first: Texts,
    second: Texts,
    first_qualities: Texts | None,
    second_qualities: Texts | None,
    backend: Backend,
    names: Texts | None = None,
) -> tuple[Reads, int]:
    """Return the reads of pairs and the number of pairs. No pair gives two empty reads and the number 0.

    names: one per pair. Raises DataError if a mate or its qualities are missing or invalid, or too long.
    """
    if (first_qualities is None) != (second_qualities is None):
        raise DataError("expected qualities of both mates or of neither")
    titles = None if names is None else list(_as_iterable(names))
    records = {
        "first": _as_records(first, first_qualities, titles),
        "second": _as_records(second, second_qualities, titles),
    }
    _check_same_count("second mates", records["second"], "first mates", records["first"])
    return _reads_of_records(records, first_qualities is not None, backend)


def _as_records(sequences: Texts, qualities: Texts | None, names: Texts | None) -> list[bytes]:
    """Return a FASTQ record for each sequence, or FASTA without qualities. Raises DataError if their numbers differ."""
    bases = [_bytes(sequence) for sequence in _as_iterable(sequences)]
    given: Iterable[bytes] = [b"*"] * len(bases) if names is None else map(_encoded, _as_iterable(names))
    titles = [b"".join(name.split(maxsplit=1)[:1]) or b"*" for name in given]
    _check_same_count("names", titles, "sequences", bases)
    if qualities is None:
        return [b">%b\n%b\n" % record for record in zip(titles, bases, strict=True)]
    marks = [_bytes(quality) for quality in _as_iterable(qualities)]
    _check_same_count("qualities", marks, "sequences", bases)
    return [b"@%b\n%b\n+\n%b\n" % record for record in zip(titles, bases, marks, strict=True)]


def _as_iterable(texts: Texts) -> Iterable[Text]:
    """A single text is one item, not an iterable of its letters."""
    return [texts] if isinstance(texts, Text) else texts


def _check_same_count(what: str, found: list[bytes], of_what: str, expected: list[bytes]) -> None:
    if len(found) != len(expected):
        raise DataError(f"expected equal numbers of {what} and {of_what}, found {len(found)} and {len(expected)}")


def _reads_of_records(records: dict[str, list[bytes]], have_qualities: bool, backend: Backend) -> tuple[Reads, int]:
    """Parse one kind of records, or first and second mates, by name; return the reads and the records per kind."""
    kinds = list(records)
    count = len(records[kinds[0]])
    lines, empty = (4, b"@*\n\n+\n\n") if have_qualities else (2, b">*\n\n")
    alternating = [record for mates in zip(*records.values(), strict=True) for record in mates]
    data = np.frombuffer(b"".join(alternating or [empty] * len(kinds)), np.uint8)
    layout = PairLayout.INTERLEAVED if len(kinds) > 1 else PairLayout.SINGLE
    reads = parse_reads(backend.to_device(data), max(count, 1) * len(kinds), lines, backend, layout)
    if reads.bad is not None:
        number, kind = divmod(reads.bad.read, len(kinds))
        raise bad_records.describe(data, *reads.bad, lines, kinds[kind], number + 1)
    return reads, count


def _encoded(text: Text) -> bytes:
    if not isinstance(text, Text):
        raise DataError(f"expected str or bytes, found {type(text).__name__}")
    return text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)


def _bytes(text: Text) -> bytes:
    return _encoded(text).translate(_LINE_BREAKS)


#: A line break in a Python sequence must not end the record; as \x7f it is reported as an invalid base or quality.
_LINE_BREAKS = bytes.maketrans(b"\r\n", b"\x7f\x7f")
