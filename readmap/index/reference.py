"""The reference: packed words, contigs, and the intervals that no match may cross."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend
from readmap.formats.fasta import Contig

#: Zero words and barrier bits behind the reference: no kernel looks further past its end than the longest read.
PAD_BASES = 16_384

#: Where the last barrier ends, which is everything behind the reference.
LAST_BARRIER_END = int(np.iinfo(np.int64).max // 2)

#: The letters of a byte of packed bases, uint32 each, in the order of memory.
_FOUR_LETTERS = np.frombuffer(b"".join(bytes(four) for four in itertools.product(b"ACGT", repeat=4)), np.uint32)

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class DeviceReference:
    """struct Reference of kernels/index/reference.cuh: arrays as Reference's, on a device, and their numbers."""

    words: Array
    barrier_blocks: Array
    barrier_starts: Array
    barrier_ends: Array
    contig_starts: Array
    alternates: Array
    barriers: int
    contigs: int
    first_alternate: int


@dataclass(frozen=True)
class Reference:
    """All contigs one behind the other, each followed by one barrier; coordinates are 0-based places in that text.

    Attributes:
        words: uint64, 32 bases each, the first in the high bits; A stands at barriers; padded by PAD_BASES.
        barrier_blocks: uint64 bitmap, a bit for each 64 bases that hold a barrier, set behind the end.
        barrier_starts, barrier_ends: int64 [barriers], sorted half-open intervals of equal letters; the last one is
            everything behind the end.
        barrier_letters: uint8 [barriers], the ambiguous letter, 0 between contigs.
        contig_starts: int64 [contigs + 1]; contig c is [contig_starts[c], contig_starts[c + 1] - 1).
        contigs: names, lengths and checksums, in order.
    """

    words: np.ndarray[Any, np.dtype[np.uint64]]
    barrier_blocks: np.ndarray[Any, np.dtype[np.uint64]]
    barrier_starts: Integers
    barrier_ends: Integers
    barrier_letters: Bytes
    contig_starts: Integers
    contigs: tuple[Contig, ...]

    def to_device(self, backend: Backend) -> DeviceReference:
        """The reference as kernels take it, its arrays on the device."""
        return DeviceReference(
            backend.hold(self.words),
            backend.hold(self.barrier_blocks),
            backend.hold(self.barrier_starts),
            backend.hold(self.barrier_ends),
            backend.hold(self.contig_starts),
            backend.to_device(self.alternates),
            len(self.barrier_starts),
            len(self.contigs),
            min(self.contig_starts[:-1][self.alternates > 0].tolist(), default=self.length),
        )

    @property
    def has_alternates(self) -> bool:
        """Whether any contig is an ALT contig."""
        return any(contig.alternate for contig in self.contigs)

    @property
    def alternates(self) -> Bytes:
        """Of each contig 1 where it is an ALT contig, uint8 [contigs]."""
        return np.array([contig.alternate for contig in self.contigs], np.uint8)

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes."""
        return sum(int(getattr(self, name).nbytes) for name in REFERENCE_ARRAYS)

    @property
    def length(self) -> int:
        """Bases and barriers in all."""
        return int(self.contig_starts[-1])

    @property
    def bases(self) -> int:
        """The sum of the contigs' lengths."""
        return self.length - len(self.contigs)

    @property
    def ambiguous_bases(self) -> int:
        """Bases that are no A, C, G or T."""
        real = self.barrier_letters > 0
        return int((self.barrier_ends - self.barrier_starts)[real].sum())

    def letters(self, begin: int, end: int) -> Bytes:
        """The upper-case IUPAC letters of [begin, end), which lies in one contig; uint8."""
        words = self.words[begin // 32 : -(-end // 32)]
        letters = _FOUR_LETTERS[words.astype(">u8").view(np.uint8)].view(np.uint8)[begin % 32 :][: end - begin]
        first = int(np.searchsorted(self.barrier_ends, begin, "right"))
        behind = int(np.searchsorted(self.barrier_starts, end, "left"))
        for barrier in range(first, behind):
            start, stop = int(self.barrier_starts[barrier]), int(self.barrier_ends[barrier])
            letters[max(start - begin, 0) : stop - begin] = self.barrier_letters[barrier]
        return letters


#: The arrays of a Reference, which the index folder keeps under these names.
REFERENCE_ARRAYS = ("words", "barrier_blocks", "barrier_starts", "barrier_ends", "barrier_letters", "contig_starts")


def packed_words(length: int) -> int:
    """The words of a packed reference of so many places."""
    return (length + PAD_BASES) // 32 + 1


def barrier_words(length: int) -> int:
    """The words of the bitmap of barriers, a bit for 64 places."""
    return (length + PAD_BASES) // 64 // 64 + 1


def reference_checksum(contigs: Sequence[Contig]) -> str:
    """BLAKE2b (128 bits) of the contigs' MD5s in order, a line each: equal where all sequences are."""
    return hashlib.blake2b("".join(f"{contig.md5}\n" for contig in contigs).encode(), digest_size=16).hexdigest()
