"""Draw small valid inputs of every format, the starting points of mutations."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Sequence
from functools import cache
from random import Random

from attacks.readers import COMPLEMENT

END_OF_FILE = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
PROTEIN = "ACDEFGHIKLMNPQRSTVWY"
CONTIGS = ("one", "two", "HLA-A*01:01")


@cache
def genome() -> dict[str, bytes]:
    """Return contigs with a repeat, a run of N, and a short contig."""
    draw = Random("genome")
    repeat = letters(draw, 150)
    one = letters(draw, 900) + repeat + b"N" * 40 + letters(draw, 700)
    two = letters(draw, 500) + repeat.translate(COMPLEMENT)[::-1] + letters(draw, 300) + repeat
    return dict(zip(CONTIGS, (one, two, letters(draw, 60)), strict=True))


def letters(draw: Random, length: int, alphabet: str = "ACGT") -> bytes:
    """Return `length` random letters of an alphabet."""
    return "".join(draw.choices(alphabet, k=length)).encode()


def bases_of_read(draw: Random) -> bytes:
    """Return a read, usually from the genome, of either strand, sometimes with an error."""
    contig = genome()[draw.choice(CONTIGS)]
    length = min(draw.choice((0, 1, 5, 30, 60, 100, 100, 150)), len(contig))
    start = draw.randrange(len(contig) - length + 1)
    bases = bytearray(contig[start : start + length] if draw.random() < 0.9 else letters(draw, length))
    if bases and draw.random() < 0.5:
        bases[draw.randrange(length)] = ord(draw.choice("ACGTNRacgtu"))
    return bytes(bases) if draw.random() < 0.5 else bytes(bases).translate(COMPLEMENT)[::-1]


def quality_of(draw: Random, length: int) -> bytes:
    """Return `length` random quality characters."""
    return letters(draw, length, "".join(map(chr, range(33, 127))) if draw.random() < 0.3 else "#,:AFI@+>")


def fastq(draw: Random, reads: int | None = None, mate: str = "", suffixes: bool = True) -> bytes:
    """Return records, sometimes in several lines each, with blank lines between them, or with CR."""
    several, blank, end = draw.random() < 0.3, draw.random() < 0.2, draw.choice((b"\n", b"\n", b"\n", b"\r\n"))
    records = []
    for number in range(draw.randrange(8) if reads is None else reads):
        bases = bases_of_read(draw)
        quality = quality_of(draw, len(bases))
        suffix = mate or (draw.choice(("", "/1", " a comment", "\tRX:Z:ACGT")) if suffixes else "")
        name = f"read{number}{suffix}".encode()
        lines = [b"@" + name, *_folded(draw, bases, several), b"+" + draw.choice((b"", b"", name))]
        lines += _folded(draw, quality, several)
        records.append(end.join(lines) + end + (end if blank and draw.random() < 0.3 else b""))
    data = b"".join(records)
    return data.removesuffix(end) if draw.random() < 0.2 and not data.endswith(end + end) else data


def _folded(draw: Random, text: bytes, several: bool) -> list[bytes]:
    if not several or len(text) < 2:
        return [text]
    width = draw.randrange(1, len(text) + 1)
    return [text[i : i + width] for i in range(0, len(text), width)]


def pairs(draw: Random) -> tuple[bytes, bytes]:
    """Return two files of mates."""
    count = draw.randrange(1, 6)
    return fastq(draw, count, "/1"), fastq(draw, count, "/2")


def interleaved(draw: Random) -> bytes:
    """Return alternating mates."""
    records = []
    for number in range(draw.randrange(1, 4)):
        for mate in (1, 2):
            bases = bases_of_read(draw)
            records.append(b"@p%d/%d\n%b\n+\n%b\n" % (number, mate, bases, quality_of(draw, len(bases))))
    return b"".join(records)


def fasta_reads(draw: Random) -> bytes:
    """Return reads without qualities, in one or several lines each."""
    names = [f"read{number}" for number in range(draw.randrange(1, 8))]
    return fasta(draw, {name: bases_of_read(draw) for name in names})


def reference(draw: Random) -> bytes:
    """Return contigs of a FASTA file."""
    return fasta(draw, {name: letters(draw, draw.choice((1, 20, 70, 300)), "ACGTacgtN") for name in CONTIGS})


def proteins(draw: Random, count: int | None = None) -> bytes:
    """Return sequences of amino acids."""
    sizes = [draw.choice((0, 1, 10, 60, 200)) for _ in range(count or draw.randrange(1, 7))]
    return fasta(draw, {f"sp|P{number}|X": letters(draw, size, PROTEIN + "XUO*b") for number, size in enumerate(sizes)})


def fasta(draw: Random, records: dict[str, bytes]) -> bytes:
    """Return records with lines of one width, some with a title."""
    width, end = draw.choice((7, 60, 10_000)), draw.choice((b"\n", b"\n", b"\r\n"))
    parts = []
    for name, text in records.items():
        lines = [text[i : i + width] for i in range(0, len(text), width)]
        parts += [b">" + name.encode() + draw.choice((b"", b" a title")), *lines]
    return end.join(parts) + draw.choice((end, end, b""))


def matrix(draw: Random) -> bytes:
    """Return scores in NCBI's format."""
    names = draw.sample(PROTEIN + "BZX*", draw.randrange(1, 25))
    rows = [f"{name} " + " ".join(str(draw.randrange(-9, 12)) for _ in names) for name in names]
    return "\n".join(["# made up", "   " + "  ".join(names), *rows, ""]).encode()


def read_group(draw: Random) -> bytes:
    """Return a value of -R or -H."""
    return draw.choice(
        (rb"@RG\tID:run1\tSM:sample\tPL:ILLUMINA", b"@RG\tID:a b\tCN:x", rb"@CO\tmade", rb"@PG\tID:x\tPP:y")
    )


def compressed(draw: Random, data: bytes) -> bytes:
    """Compress with gzip in one or several members, or with blocked gzip."""
    cut = draw.randrange(len(data) + 1)
    kind, level = draw.randrange(3), draw.choice((1, 8))
    if kind == 0:
        return _gzip(data, level)
    if kind == 1:
        return _gzip(data[:cut], level) + _gzip(data[cut:], level) + bytes(draw.choice((0, 0, 9)))
    return bgzf(data, [cut])


def _gzip(data: bytes, memory_level: int) -> bytes:
    """Return one member; memory level 1 starts a block every hundred letters."""
    made = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS | 16, memory_level)
    return made.compress(data) + made.flush()


def bgzf(data: bytes, cuts: Sequence[int] = (), end: bool = True) -> bytes:
    """Return blocked gzip. A block ends at each of `cuts` and after every 60,000 bytes."""
    places = sorted({0, len(data), *range(0, len(data), 60_000), *(cut for cut in cuts if cut <= len(data))})
    blocks = []
    for start, stop in itertools.pairwise(places):
        made = zlib.compressobj(1, zlib.DEFLATED, -15)
        body = made.compress(data[start:stop]) + made.flush()
        head = struct.pack("<4s4xBBH2sHH", b"\x1f\x8b\x08\x04", 0, 255, 6, b"BC", 2, len(body) + 25)
        blocks.append(head + body + struct.pack("<II", zlib.crc32(data[start:stop]), stop - start))
    return b"".join(blocks) + (END_OF_FILE if end else b"")


def bam(draw: Random) -> tuple[bytes, list[int]]:
    """Return uncompressed BAM (single reads, pairs, split reads, any order), and the offsets of its integers."""
    text = b"@HD\tVN:1.6%b\n@RG\tID:g1\n@RG\tID:g2\n" % draw.choice((b"", b"", b"\tSO:coordinate"))
    header = b"BAM\1" + struct.pack("<i", len(text)) + text + struct.pack("<i", len(CONTIGS))
    fields = [4, 8 + len(text)]
    for name, sequence in genome().items():
        fields.append(len(header))
        header += struct.pack("<i", len(name) + 1) + name.encode() + b"\0" + struct.pack("<i", len(sequence))
    records = []
    for number in range(draw.randrange(7)):
        group = draw.choice((b"", b"RGZg1\0", b"RGZg2\0"))
        for flag in draw.choice(((4,), (0,), (16,), (77, 141), (99, 147), (16, 2064), (0, 256), (73,), (512,))):
            records.append(_bam_record(draw, b"read%d" % number, flag, group))
    if draw.random() < 0.5:
        draw.shuffle(records)
    for record in records:
        fields += [len(header) + place for place in (0, 4, 8, 12, 16, 18, 20, 24, 28, 32)]
        header += record
    return header, fields


def _bam_record(draw: Random, name: bytes, flag: int, group: bytes) -> bytes:
    bases, is_mapped = bases_of_read(draw).upper().replace(b"U", b"T"), not flag & 4
    nibbles = [b"=ACMGRSVTWYHKDBN".index(base) for base in bases] + [0]
    packed = bytes(nibbles[i] << 4 | nibbles[i + 1] for i in range(0, len(bases), 2))
    phreds = bytes(draw.randrange(94) for _ in bases) if draw.random() < 0.8 else b"\xff" * len(bases)
    cigar = struct.pack("<I", len(bases) << 4) if is_mapped and bases else b""
    tags = group + draw.choice((b"", b"NMC\3", b"XXBs\2\0\0\0\1\0\2\0", b"RXZACGT\0", b"XAAx"))
    place = draw.randrange(200) if is_mapped else -1
    body = struct.pack("<iiBBHHHiiii", 0 if is_mapped else -1, place, len(name) + 1, 60, 4680, len(cigar) // 4, flag,
                       len(bases), -1, -1, 0)  # fmt: skip
    body += name + b"\0" + cigar + packed + phreds + tags
    return struct.pack("<i", len(body)) + body
