"""Test parsing of BAM: tags as htslib prints them, reads as sequenced, and no crash on any bytes."""

import random
import re
import struct
from pathlib import Path

import numpy as np
import pysam
import pytest

from readmap.errors import DataError
from readmap.formats.bgzf import END_OF_FILE, BgzfOutput
from readmap.formats.output import open_output
from readmap.reads.alignment_chunks import AlignmentChunk
from readmap.reads.alignment_reads import AlignmentReads, open_reads
from readmap.reads.bam_records import ALL_TAGS, HAS_QUALITY
from readmap.reads.mate_collation import WINDOW

LETTERS = "=ACMGRSVTWYHKDBN"
CONTIGS = b"\x01\0\0\0\x02\0\0\0c\0\x64\0\0\0"


def record(
    name: bytes = b"r",
    flag: int = 4,
    bases: str = "ACGT",
    phreds: bytes | None = None,
    tags: bytes = b"",
    contig: int = -1,
    **wrong: int,
) -> bytes:
    """Return a BAM record; wrong: fields to set to inconsistent values."""
    codes = [LETTERS.index(base) for base in bases] + [0] * (len(bases) % 2)
    nibbles = bytes(high << 4 | low for high, low in zip(codes[::2], codes[1::2], strict=True))
    qualities = b"\xff" * len(bases) if phreds is None else phreds
    body = name + b"\0" + nibbles + qualities + tags
    said = {"size": 32 + len(body), "named": len(name) + 1, "operations": 0, "length": len(bases)} | wrong
    places = (said["named"], 0, 4680, said["operations"], flag, said["length"], -1, -1, 0)
    return struct.pack("<iiiBBHHHiiii", said["size"], contig, -1, *places) + body


def write(path: Path, *records: bytes, header: bytes = b"") -> Path:
    """Write a BAM file."""
    output = BgzfOutput(open_output(str(path)), 1)
    output.write(b"BAM\1" + struct.pack("<i", len(header)) + header + CONTIGS + b"".join(records))
    output.commit()
    return path


def start(path: Path, tags: tuple[str, ...] = (), *, paired: bool = False, window: int = WINDOW) -> AlignmentReads:
    source = open_reads(str(path), 2)
    assert isinstance(source, AlignmentReads)
    source.start(tags, paired, window)
    return source


def chunks(source: AlignmentReads, chunk_bytes: int = 1 << 20, most: int | None = None) -> list[AlignmentChunk]:
    """Return all chunks with copies of their text."""
    found = []
    for chunk in source.chunks(lambda size: np.empty(size, np.uint8), chunk_bytes, most):
        found.append(AlignmentChunk(chunk.text.copy(), chunk.spans.copy(), chunk.paired, chunk.buffer))
        chunk.release()
    return found


def texts(chunk: AlignmentChunk) -> list[tuple[str, str, str | None]]:
    """Return header, bases and qualities of each read."""
    found = []
    for span in chunk.spans:
        text, begin = chunk.text.tobytes().decode(), int(span["start"])
        bases = begin + int(span["header_length"])
        qualities = bases + int(span["length"])
        end = qualities + int(span["length"])
        has_quality = span["marks"] & HAS_QUALITY
        found.append((text[begin:bases], text[bases:qualities], text[qualities:end] if has_quality else None))
    return found


def read_all(path: Path, *tags: str) -> list[tuple[str, str, str | None]]:
    return [text for chunk in chunks(start(path, tags)) for text in texts(chunk)]


def test_reads_are_as_they_were_sequenced(tmp_path: Path) -> None:
    """Reverse records are complemented, missing qualities stay missing, non-primary records are skipped."""
    made = (
        record(b"all", 4, LETTERS[1:], bytes(range(15))),
        record(b"back", 16, "ACMGRSVTWYHKDBN", bytes(range(15))),
        record(b"without", 0, "ACG"),
        record(b"secondary", 256),
        record(b"supplementary", 2048),
        record(b"empty", 4, ""),
        record(b"numbered/2", 0x200 | 0x400 | 4, "A", b"\x5d"),
        record(b"*", 4, "N", b"\0"),
    )
    qualities = "".join(chr(33 + i) for i in range(15))
    expected = [
        ("all\n", LETTERS[1:], qualities),
        ("back\n", "NVHMDRWABSYCKGT", qualities[::-1]),
        ("without\n", "ACG", None),
        ("empty\n", "", ""),
        ("numbered/2\n", "A", "~"),
        ("*\n", "N", "!"),
    ]
    path = write(tmp_path / "made.bam", *made)
    assert read_all(path) == expected
    (chunk,) = chunks(start(path))
    assert [span["name_length"] for span in chunk.spans] == [3, 4, 7, 5, 8, 1]
    assert [span["marks"] & ~HAS_QUALITY for span in chunk.spans] == [0, 0, 0, 0, 8, 0]


def test_same_tags_as_samtools(tmp_path: Path) -> None:
    """Floats of all magnitudes, integers of all types, arrays and text."""
    draw = random.Random(412)
    floats = [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x7F7FFFFF, 0x00800000, 0x3C23D70A, 0x3C23D709]
    floats += [struct.unpack("<I", struct.pack("<f", x))[0] for x in (999999.5, 999999, 1e6, 1e-4, 9.99995e-5, 0.1)]
    floats += [struct.unpack("<I", struct.pack("<f", n / 2**k))[0] for n in range(1, 40, 2) for k in range(0, 24, 3)]
    floats += [draw.getrandbits(32) & ~(0x7F800000 if i % 7 == 0 else 0) for i in range(4000)]
    limits = {"c": (-128, 127), "C": (0, 255), "s": (-(2**15), 2**15 - 1), "S": (0, 2**16 - 1)}
    limits |= {"i": (-(2**31), 2**31 - 1), "I": (0, 2**32 - 1)}
    formats = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I"}
    made = []
    for number in range(0, len(floats), 20):
        some = struct.pack("<20I", *(floats + [0] * 20)[number : number + 20])
        tags = b"".join(b"F%cf" % (65 + i) + some[4 * i : 4 * i + 4] for i in range(20))
        tags += b"XFBf" + struct.pack("<I", 20) + some + b"XEBf\0\0\0\0"
        for letter, (low, high) in limits.items():
            values = [low, high, 0, draw.randint(low, high)]
            tags += f"X{letter}{letter}".encode() + struct.pack(f"<{formats[letter]}", values[number % 4])
            tags += f"Y{letter}B{letter}".encode() + struct.pack(f"<I4{formats[letter]}", 4, *values)
        tags += b"ZAA!ZBZ\0ZCZa b~\0ZDH\0ZEH1AE301\0"
        made.append(record(b"r%d" % number, tags=tags))
    path = write(tmp_path / "tags.bam", *made, header=b"@SQ\tSN:c\tLN:100\n")
    expected = pysam.samtools.view(str(path)).splitlines()  # type: ignore[attr-defined]
    assert [header.rstrip("\n").split("\t")[1:] for header, *_ in read_all(path, *ALL_TAGS)] == [
        line.split("\t")[11:] for line in expected
    ]
    (header, *_), *_ = read_all(path, "ZB", "FA", "QQ")
    assert header == "r0\tFA:f:0\tZB:Z:\n"


BROKEN = {
    "size 32": (record(size=32), "expected a size of 33 to 268435456 bytes, found 32"),
    "size -1": (record(size=-1), "expected a size of 33 to 268435456 bytes, found -1"),
    "long": (record(size=1000), "record 3: record is truncated: expected 1004 bytes, found 87"),
    "no NUL": (record(named=1), "(r): expected a name from '!' to '~' without '@', followed by a NUL, found b'r'"),
    "no name": (record(named=0), "(unnamed): expected a name"),
    "empty name": (record(b""), "(unnamed): expected a name from '!' to '~' without '@', followed by a NUL, found b'"),
    "blank": (record(b"a b"), "(a b): expected a name from '!' to '~' without '@', followed by a NUL, found b'a b"),
    "NUL in name": (record(b"a\0b"), "expected a name from '!' to '~' without '@'"),
    "negative": (record(length=-1), "(r): expected a base count of 0 or more, found -1"),
    "many bases": (record(length=9), "(r): expected 52 bytes of name, CIGAR, 9 bases and qualities, found 44"),
    "most bases": (record(length=2**31 - 1), "bytes of name, CIGAR, 2147483647 bases and qualities, found 44"),
    "many operations": (record(operations=1), "(r): expected 48 bytes of name, CIGAR"),
    "contig": (record(contig=1), "expected contigs of -1 to 0, found 1 and -1"),
    "contig -2": (record(contig=-2), "expected contigs of -1 to 0, found -2 and -1"),
    "equal": (record(bases="AC=T"), "record 3 (r): expected a nucleotide at base 3, found '='"),
    "quality": (record(phreds=b"\0\0\0\x5e"), "record 3 (r): expected a quality of 0 to 93 at base 4, found 94"),
    "long read": (record(bases="A" * 10_001), "(r): the read has 10001 bases; at most 10000 are supported"),
    "half a tag": (record(tags=b"XX"), "whose value ends within the record, found b'XX' as tag 1"),
    "tag type": (record(tags=b"XXCaYYd12345678XXq2"), "whose value ends within the record, found b'XXq2' as tag 3"),
    "no value": (record(tags=b"XXi234"), "found b'XXi234' as tag 1"),
    "no NUL of tag": (record(tags=b"XXZ234"), "found b'XXZ234' as tag 1"),
    "array": (record(tags=b"XXBS\xff\xff\xff\xff22"), "found b'XXBS\\xff\\xff\\xff\\xff22' as tag 1"),
    "array type": (record(tags=b"XXBZ\0\0\0\0"), "found b'XXBZ\\x00\\x00\\x00\\x00' as tag 1"),
    "tab": (record(tags=b"RGZa\tb\0"), "expected a tag that SAM can represent, found b'RGZa\\tb\\x00' as tag 1"),
    "tag name": (record(tags=b"R\nZab\0"), None),
}


@pytest.mark.parametrize("what", BROKEN)
def test_invalid_records_are_described(tmp_path: Path, what: str) -> None:
    """Records before the error are read; the message has file, record, expected and found."""
    broken, message = BROKEN[what]
    tail = record(b"behind") if what != "long" else record(b"behind", bases="")
    path = write(tmp_path / "made.bam", record(b"good"), record(b"next", 256), broken, tail)
    if message is None:
        assert len(read_all(path, "RG")) == 3
        return
    given = start(path, ("RG",)).chunks(lambda size: np.empty(size, np.uint8), 1 << 20)
    assert [header for header, *_ in texts(next(given))] == ["good\n"]
    with pytest.raises(DataError, match=re.escape(message)) as error:
        next(given)
    assert str(error.value).startswith(f"{path}, record 3")


def test_names_follow_sam(tmp_path: Path) -> None:
    """Same rule as for FASTQ: other bytes would corrupt the SAM line."""
    for byte in range(256):
        path = write(tmp_path / "made.bam", record(bytes([byte])), record(bytes([byte]) * 254), record(b"r", 256))
        if re.fullmatch(rb"[!-?A-~]", bytes([byte])):
            assert [header for header, *_ in read_all(path)] == [f"{chr(byte)}\n", f"{chr(byte) * 254}\n"]
            continue
        with pytest.raises(DataError, match=r"(?s)record 1 \(.*\): expected a name from '!' to '~' without '@'"):
            read_all(path)
    with pytest.raises(DataError, match=r"record 2 \(a b\): expected a name"):  # of a record that is not mapped, too
        read_all(write(tmp_path / "made.bam", record(), record(b"a b", 256)))


def test_corrupt_headers(tmp_path: Path) -> None:
    path = tmp_path / "made.bam"
    for header, message in (
        (b"BAM\1", "expected the length of its text, found the end of the data"),
        (b"BAM\1" + struct.pack("<i", -1), "expected the length of its text, found -1"),
        (b"BAM\1" + struct.pack("<i", 9) + b"@CO", "expected a text of 9 bytes, found the end of the data after 3"),
        (b"BAM\1" + struct.pack("<ii", 0, -1), "expected a contig count, found -1"),
        (b"BAM\1" + struct.pack("<iii", 0, 1, 0), "expected the length of the name of contig 1, found 0"),
        (b"BAM\1" + struct.pack("<iii", 0, 1, 2) + b"ab", "expected a NUL after the name of contig 1"),
        (b"BAM\1" + struct.pack("<iii", 0, 2**31 - 1, 2) + b"a\0", "expected the length of contig 1, found the end"),
    ):
        output = BgzfOutput(open_output(str(path)), 1)
        output.write(header)
        output.commit()
        with pytest.raises(DataError, match=message):
            open_reads(str(path))


@pytest.mark.parametrize("end", [b"", END_OF_FILE])
def test_truncated_record(tmp_path: Path, end: bytes) -> None:
    """Without the end-of-file block the file is truncated; with it, the record is."""
    cut = record(b"b")[:-7]
    path = write(tmp_path / "made.bam", record(b"a"), cut)
    path.write_bytes(path.read_bytes().removesuffix(END_OF_FILE) + end)
    given = start(path).chunks(lambda size: np.empty(size, np.uint8), 1 << 20)
    assert len(next(given).spans) == 1
    truncated = f"record 2: record is truncated: expected {len(cut) + 7} bytes"
    message = truncated if end else r"made\.bam: unexpected end of the compressed data after \d+ .*: BGZF's end-of-file"
    with pytest.raises(DataError, match=message):
        next(given)


@pytest.mark.parametrize("seed", range(4))
def test_altered_bytes_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    """Any bytes give reads or an error of one line."""
    draw = random.Random(seed)
    tags = b"XAAxXCC\1XSS\1\0XII\1\0\0\0XFf\0\0\1\0XZZtext\0XHH1A\0XBBs\2\0\0\0abcd"
    refused = []
    for _ in range(150):
        made = [
            record(
                b"r%d" % i,
                (4, 16, 77, 141)[i % 4],
                "ACGTN" * draw.randrange(8),
                tags=tags[: draw.choice((0, len(tags)))],
            )
            for i in range(6)
        ]
        data = bytearray(b"".join(made))
        for _ in range(draw.randrange(1, 5)):
            place = draw.randrange(len(data))
            data[place] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, data[place] ^ 1 << draw.randrange(8)))
        size = draw.choice((len(data), len(data), draw.randrange(len(data))))
        path = write(tmp_path / "made.bam", bytes(data[:size]))
        try:
            source = start(path, ALL_TAGS, paired=bool(draw.randrange(2)))
            chunks(source, draw.choice((128, 1 << 16)), draw.choice((None, 1, 2)))
        except DataError as error:
            refused.append(str(error))
    assert 0 < len(refused) < 150
    assert all(re.match(rf"{re.escape(str(path))}[:,] .*$", message) for message in refused)
