"""Small slow readers that implement the rules of the formats, to check what readmap accepts."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

COMPLEMENT = bytes.maketrans(b"ACGTRYSWKMBDHVNacgtryswkmbdhvn", b"TGCAYRSWMKVHDBNtgcayrswmkvhdbn")
READ_NAME = re.compile(rb"[!-?A-~]{1,254}")
CONTIG_NAME = re.compile(rb"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
NUCLEOTIDES = re.compile(rb"[ACGTUNRYKMSWBDHVacgtunrykmswbdhv]*")
QUALITIES = re.compile(rb"[!-~]*")
MAX_READ_LENGTH = 10_000
SECONDARY_OR_SUPPLEMENTARY, REVERSED, MATES = 0x900, 0x10, 0xC0


class Invalid(Exception):
    """The input breaks a rule of its format."""


class Read(NamedTuple):
    """A read as sequenced. mate: 0 for a single read, else 1 or 2. quality: None if missing."""

    name: bytes
    bases: bytes
    quality: bytes | None
    mate: int = 0


def inflated(data: bytes) -> bytes:
    """Decompress gzip data; return other data unchanged."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise Invalid(f"no gzip: {error}") from None


def read_reads(data: bytes) -> list[Read]:
    """Return the records of FASTQ or FASTA."""
    data = data.lstrip(b"\r\n")
    if not data:
        return []
    lines = [line.rstrip(b"\r") for line in data.removesuffix(b"\n").split(b"\n")]
    return [checked(read) for read in (_fasta(lines) if lines[0].startswith(b">") else _fastq(iter(lines)))]


def _fastq(lines: Iterator[bytes]) -> Iterator[Read]:
    """Yield records by kseq's rule: quality lines continue until their length reaches that of the bases."""
    for header in lines:
        if not header:
            continue
        if not header.startswith(b"@"):
            raise Invalid(f"a header of FASTQ is {header!r}")
        bases, quality = b"", b""
        for line in lines:
            if line.startswith(b"+"):
                break
            bases += line
        else:
            raise Invalid("a record ends before its '+'")
        if re.split(rb"[ \t]", line[1:])[0] not in (b"", re.split(rb"[ \t]", header[1:])[0]):
            raise Invalid(f"{header!r} is {line!r} after its bases")
        for line in lines:
            quality += line
            if len(quality) >= len(bases):
                break
        if len(quality) != len(bases):
            raise Invalid(f"{len(quality)} qualities of {len(bases)} bases")
        yield Read(header[1:], bases, quality)


def _fasta(lines: Sequence[bytes]) -> Iterator[Read]:
    starts = [number for number, line in enumerate(lines) if line.startswith(b">")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield Read(lines[start][1:], b"".join(lines[start + 1 : end]), None)


def checked(read: Read) -> Read:
    """Return the read with its name cut at the first blank and without /1 and /2; raise Invalid if it is invalid."""
    name = re.split(rb"[ \t]", read.name)[0]
    name = name[:-2] if len(name) > 2 and name.endswith((b"/1", b"/2")) else name
    if not READ_NAME.fullmatch(name):
        raise Invalid(f"a read's name is {name[:300]!r}")
    if not NUCLEOTIDES.fullmatch(read.bases) or len(read.bases) > MAX_READ_LENGTH:
        raise Invalid(f"{name!r} has {len(read.bases)} bases {read.bases[:80]!r}")
    if read.quality is not None and not QUALITIES.fullmatch(read.quality):
        raise Invalid(f"{name!r} has the qualities {read.quality[:80]!r}")
    return read._replace(name=name)


def read_fasta(data: bytes, letters: str, empty: bool) -> list[tuple[bytes, bytes]]:
    """Return names and upper-case letters of FASTA records. letters: allowed letters. empty: allow empty records."""
    records = []
    lines = data.split(b"\n")
    while lines and not lines[0].strip(b"\r"):
        del lines[0]
    if not lines or not lines[0].startswith(b">"):
        raise Invalid("it does not begin with '>'")
    for read in _fasta(lines):
        name = b"" if read.name[:1].isspace() else read.name.split(maxsplit=1)[0] if read.name else b""
        found = read.bases.replace(b"\r", b"").upper()
        if not name or set(found) - set(letters.encode()) or not (found or empty):
            raise Invalid(f"record {name!r} has the letters {found[:80]!r}")
        records.append((name, found))
    return records


def read_bam(data: bytes) -> list[Read]:
    """Return the primary records of uncompressed BAM, in the file's order."""
    at = _skip_header(data)
    reads = []
    while at < len(data):
        if at + 4 > len(data) or at + 4 + (size := struct.unpack_from("<i", data, at)[0]) > len(data) or size < 33:
            raise Invalid("a record is cut short")
        name_size, operations, flag, length = struct.unpack_from("<8xB3xHHi", data, at + 4)
        record = data[at + 36 : at + 4 + size]
        at += 4 + size
        if flag & SECONDARY_OR_SUPPLEMENTARY:
            continue
        bases_at = name_size + 4 * operations
        qualities_at = bases_at + (length + 1) // 2
        if length < 0 or qualities_at + length > len(record):
            raise Invalid(f"a record of {size} bytes has {length} bases")
        nibbles = record[bases_at:qualities_at]
        bases = bytes(b"=ACMGRSVTWYHKDBN"[nibble] for byte in nibbles for nibble in (byte >> 4, byte & 15))[:length]
        phreds = record[qualities_at : qualities_at + length]
        quality = None if phreds[:1] == b"\xff" else bytes(min(phred + 33, 255) for phred in phreds)
        if flag & REVERSED:
            bases, quality = bases.translate(COMPLEMENT)[::-1], quality and quality[::-1]
        name = record[: name_size - 1] if record[name_size - 1 : name_size] == b"\0" else b"\0"
        reads.append(checked(Read(name, bases, quality))._replace(mate=(flag & MATES) >> 6))
    return reads


def _skip_header(data: bytes) -> int:
    try:
        at = 8 + struct.unpack_from("<i", data, 4)[0]
        (contigs,) = struct.unpack_from("<i", data, at)
        at += 4
        for _ in range(contigs):
            at += 8 + struct.unpack_from("<i", data, at)[0]
    except struct.error as error:
        raise Invalid(f"no header of BAM: {error}") from None
    if not data.startswith(b"BAM\1") or not 0 < at <= len(data):
        raise Invalid("no header of BAM")
    return at


def read_sam(text: bytes) -> list[Read]:
    """Return the primary records of SAM, as sequenced."""
    reads = []
    for line in text.splitlines():
        if line.startswith(b"@"):
            continue
        name, flag, *_, bases, quality = line.split(b"\t")[:11]
        if int(flag) & SECONDARY_OR_SUPPLEMENTARY:
            continue
        bases = b"" if bases == b"*" else bases
        quality = None if quality == b"*" else quality
        if int(flag) & REVERSED:
            bases, quality = bases.translate(COMPLEMENT)[::-1], quality and quality[::-1]
        reads.append(Read(name, bases, quality, (int(flag) & MATES) >> 6))
    return reads


def as_written(read: Read) -> Read:
    """Return a read as in SAM: upper case, T for U, N for other letters; quality None if empty or "*"."""
    bases = re.sub(rb"[^ACGT]", b"N", read.bases.upper().replace(b"U", b"T"))
    return read._replace(bases=bases, quality=None if read.quality in (b"", b"*") else read.quality)


def difference(expected: Iterable[Read], found: Iterable[Read]) -> str:
    """Describe the first difference between two lists of reads, or return ""."""
    expected, found = list(expected), list(found)
    if len(expected) != len(found):
        return f"expected {len(expected)} reads, found {len(found)}"
    for number, (one, other) in enumerate(zip(expected, found, strict=True), 1):
        for field, value, other_value in zip(Read._fields, one, other, strict=True):
            if value != other_value:
                return f"read {number} ({one.name!r}): expected {field} {value!r}, found {other_value!r}"[:500]
    return ""
