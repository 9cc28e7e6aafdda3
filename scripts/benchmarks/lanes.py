"""Write lanes of read pairs as gzip, some of them duplicates, like a sequenced sample."""

from __future__ import annotations

import multiprocessing
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from readmap.bam.codecs import block_compressor
from readmap.formats.bgzf import END_OF_FILE, LEVEL

LENGTH, INSERT, DEVIATION = 150, 400, 60
PAIRS = 100_000  # pairs that a process simulates at a time
VARIANTS, ERRORS = 0.001, 0.002  # shares of the bases: variants of the sample, errors of the sequencer
DUPLICATES, OPTICAL = (
    0.15,
    0.1,
)  # share of pairs that are duplicates, with errors of their own; share of these that are optical
PIXELS = (10_000, 30_000)  # range of x and y in a tile
OPTICAL_DISTANCE = 50  # maximum distance of optical duplicates in x and in y
DIGITS = 9  # digits of a read's index
ONE_MEMBER_LEVEL, RAW = 1, -15  # isal's level, and zlib's window bits for deflate without a header
GZIP_HEADER = bytes.fromhex("1f8b0800 00000000 00ff")
LAST_BLOCK = bytes.fromhex("0300")  # an empty block with fixed Huffman codes

Letters = NDArray[np.uint8]

COMPLEMENT = np.arange(256, dtype=np.uint8)
COMPLEMENT[list(b"ACGTacgt")] = list(b"TGCAtgca")
OTHER = np.frombuffer(b"ACGT", np.uint8)
# Mostly phred 37, like current sequencers.
QUALITIES = np.frombuffer(b"F" * 225 + b":" * 20 + b"," * 11, np.uint8)


@dataclass(frozen=True)
class Lane:
    """The files of a lane: gzip in blocks (BGZF), and the same reads as a single gzip member."""

    pairs: int
    blocked: tuple[Path, Path]
    one_member: tuple[Path, Path]


def letters_of(reference: Path) -> Letters:
    """Return the letters of a FASTA file with random variants of a sample."""
    with open(reference, "rb") as lines:
        letters = np.frombuffer(b"".join(line.rstrip() for line in lines if not line.startswith(b">")), np.uint8).copy()
    changed(letters, VARIANTS, np.random.default_rng(1))
    return letters


def changed(letters: Letters, share: float, draw: np.random.Generator) -> None:
    """Replace a random share of the letters in place."""
    count = int(len(letters) * share)
    letters[draw.integers(0, len(letters), count)] = OTHER[draw.integers(0, len(OTHER), count)]


def texts(letters: Letters, pairs: int, number: int) -> tuple[Letters, Letters]:
    """Return the FASTQ text of both mates of `pairs` pairs. number: index of the part, the random seed."""
    draw = np.random.default_rng([2, number])
    inserts = np.clip(draw.normal(INSERT, DEVIATION, pairs), LENGTH, 2 * INSERT).astype(np.int64)
    starts, clusters = draw.integers(0, len(letters) - 2 * INSERT, pairs), draw.integers(*PIXELS, (pairs, 2))
    for again in np.flatnonzero(draw.random(pairs) < DUPLICATES):
        starts[again], inserts[again] = starts[again - 1], inserts[again - 1]
        if draw.random() < OPTICAL:
            clusters[again] = np.clip(
                clusters[again - 1] + draw.integers(-OPTICAL_DISTANCE, OPTICAL_DISTANCE, 2), *PIXELS
            )
    steps = np.arange(LENGTH)
    first, second = letters[starts[:, None] + steps], COMPLEMENT[letters[(starts + inserts - 1)[:, None] - steps]]
    swapped = draw.integers(0, 2, pairs) == 1
    first[swapped], second[swapped] = second[swapped], first[swapped]
    numbers = number * PAIRS + np.arange(pairs)
    names = np.array([b"r:%0*d:FC:1:1101:%d:%d" % (DIGITS, *one) for one in np.column_stack([numbers, clusters])])
    return fastq(names, first, draw), fastq(names, second, draw)


def fastq(names: NDArray[np.bytes_], bases: Letters, draw: np.random.Generator) -> Letters:
    """Return the records of reads, with sequencing errors."""
    changed(bases.reshape(-1), ERRORS, draw)
    count = len(bases)

    def same(text: bytes) -> Letters:
        return np.tile(np.frombuffer(text, np.uint8), (count, 1))

    named = names.view(np.uint8).reshape(count, names.itemsize)
    qualities = QUALITIES[draw.integers(0, len(QUALITIES), bases.shape)]
    return np.concatenate([same(b"@"), named, same(b"\n"), bases, same(b"\n+\n"), qualities, same(b"\n")], axis=1)


_letters = np.empty(0, np.uint8)  # shared with forked children


@dataclass(frozen=True)
class _Text:
    """A part of a file: its blocks, its piece of the single member, and the checksum and size of the text."""

    blocks: bytes
    stretch: bytes
    checksum: int
    size: int


def _part(pairs: int, number: int) -> list[_Text]:
    """Return a part of both files."""
    return [_text(mate.reshape(-1)) for mate in texts(_letters, pairs, number)]


def _text(text: Letters) -> _Text:
    made = isal_zlib.compressobj(ONE_MEMBER_LEVEL, isal_zlib.DEFLATED, RAW)
    stretch = made.compress(text) + made.flush(isal_zlib.Z_FULL_FLUSH)
    blocks = b"".join(map(bytes, block_compressor()([text], LEVEL).data))
    return _Text(blocks, stretch, isal_zlib.crc32(text), len(text))


def write_lanes(reference: Path, folder: Path, lanes: int, pairs: int, processes: int) -> list[Lane]:
    """Write lanes of at least `pairs` pairs each; files of an earlier run are reused."""
    global _letters
    parts, part = -(-pairs // PAIRS), min(pairs, PAIRS)

    def named(lane: int, form: str) -> tuple[Path, Path]:
        return folder / f"lane{lane}.{form}.1.fq.gz", folder / f"lane{lane}.{form}.2.fq.gz"

    made = [Lane(parts * part, named(lane, "blocks"), named(lane, "member")) for lane in range(1, lanes + 1)]
    if all(file.exists() for lane in made for file in (*lane.blocked, *lane.one_member)):
        return made
    _letters = letters_of(reference)
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for number, lane in enumerate(made):
            numbers = range(number * parts, (number + 1) * parts)
            _write(lane, pool.imap(partial(_part, part), numbers))
    _letters = np.empty(0, np.uint8)
    return made


def _write(lane: Lane, parts: Iterator[list[_Text]]) -> None:
    """Write the parts of a lane to its files."""
    with ExitStack() as stack:

        def opened(files: tuple[Path, Path]) -> list[BinaryIO]:
            return [stack.enter_context(open(file, "wb")) for file in files]

        blocked, one_member = opened(lane.blocked), opened(lane.one_member)
        checksums, sizes = [0, 0], [0, 0]
        for file in one_member:
            file.write(GZIP_HEADER)
        for part in parts:
            for mate, text in enumerate(part):
                blocked[mate].write(text.blocks)
                one_member[mate].write(text.stretch)
                checksums[mate] = isal_zlib.crc32_combine(checksums[mate], text.checksum, text.size)
                sizes[mate] += text.size
        for mate in range(2):
            blocked[mate].write(END_OF_FILE)
            trailer = struct.pack("<I I", checksums[mate], sizes[mate] & 0xFFFFFFFF)
            one_member[mate].write(LAST_BLOCK + trailer)
