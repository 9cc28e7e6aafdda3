"""The reference: packed bases, contigs, and the barriers that no match may cross."""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Backend
from readmap.backend.tables import Table
from readmap.formats.fasta import Contig

#: Padding after the reference: no kernel reads further past its end than the longest read.
PAD_BASES = 16_384

#: End of the last barrier, which covers everything after the reference.
LAST_BARRIER_END = int(np.iinfo(np.int64).max // 2)

#: The four letters of each byte of packed bases, as uint32 in memory order.
_FOUR_LETTERS = np.frombuffer(b"".join(bytes(four) for four in itertools.product(b"ACGT", repeat=4)), np.uint32)

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


class DeviceReference(Table, struct="index/reference.cuh:Reference"):
    """The arrays of a Reference on a device, and their sizes."""


@dataclass(frozen=True)
class Reference:
    """All contigs concatenated, each followed by a barrier. Positions are 0-based in this concatenation.

    words: uint64, 32 bases each, the first in the high bits; A at barriers; padded by PAD_BASES. barrier_blocks: uint64
    bitmap with one bit per 64 bases, set if a barrier overlaps them or they are after the end. barrier_starts,
    barrier_ends: int64 [barriers], sorted half-open intervals of one ambiguous letter or between contigs, and a last
    interval after the end. barrier_letters: uint8 [barriers], the ambiguous letter; 0 between contigs. contig_starts:
    int64 [contigs + 1]; contig c is [contig_starts[c], contig_starts[c + 1] - 1). contigs: names, lengths, checksums.
    """

    words: np.ndarray[Any, np.dtype[np.uint64]]
    barrier_blocks: np.ndarray[Any, np.dtype[np.uint64]]
    barrier_starts: Integers
    barrier_ends: Integers
    barrier_letters: Bytes
    contig_starts: Integers
    contigs: tuple[Contig, ...]

    def to_device(self, backend: Backend) -> DeviceReference:
        """Copy the arrays to a device; the CPU backend shares the host's arrays."""
        names = ("words", "barrier_blocks", "barrier_starts", "barrier_ends", "contig_starts")
        return DeviceReference(
            **{name: backend.to_device_random_access(getattr(self, name)) for name in names},
            alternates=backend.to_device(self.alternates),
            barriers=len(self.barrier_starts),
            contigs=len(self.contigs),
            first_alternate=min(self.contig_starts[:-1][self.alternates > 0].tolist(), default=self.length),
        )

    @property
    def has_alternates(self) -> bool:
        return any(contig.alternate for contig in self.contigs)

    @property
    def alternates(self) -> Bytes:
        """1 for ALT contigs, else 0; uint8 [contigs]."""
        return np.array([contig.alternate for contig in self.contigs], np.uint8)

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes."""
        return sum(int(getattr(self, name).nbytes) for name in REFERENCE_ARRAYS)

    @property
    def length(self) -> int:
        """The number of positions: bases and barriers."""
        return int(self.contig_starts[-1])

    @property
    def bases(self) -> int:
        """The sum of the contig lengths."""
        return self.length - len(self.contigs)

    @property
    def ambiguous_bases(self) -> int:
        """The number of bases other than A, C, G and T."""
        real = self.barrier_letters > 0
        return int((self.barrier_ends - self.barrier_starts)[real].sum())

    def letters(self, start: int, end: int) -> Bytes:
        """Return the upper-case IUPAC letters of [start, end), which lies in one contig; uint8."""
        words = self.words[start // 32 : -(-end // 32)]
        letters = _FOUR_LETTERS[words.astype(">u8").view(np.uint8)].view(np.uint8)[start % 32 :][: end - start]
        first = int(np.searchsorted(self.barrier_ends, start, "right"))
        for barrier in range(first, int(np.searchsorted(self.barrier_starts, end, "left"))):
            barrier_start, barrier_end = int(self.barrier_starts[barrier]), int(self.barrier_ends[barrier])
            letters[max(barrier_start - start, 0) : barrier_end - start] = self.barrier_letters[barrier]
        return letters


#: The arrays of a Reference; the index folder stores them under these names.
REFERENCE_ARRAYS = ("words", "barrier_blocks", "barrier_starts", "barrier_ends", "barrier_letters", "contig_starts")


def packed_words(length: int) -> int:
    """Return the number of words of a packed reference of `length` positions."""
    return (length + PAD_BASES) // 32 + 1


def barrier_words(length: int) -> int:
    """Return the number of words of the barrier bitmap, one bit per 64 positions."""
    return (length + PAD_BASES) // 64 // 64 + 1


def reference_checksum(contigs: Sequence[Contig]) -> str:
    """Return BLAKE2b (128 bits) of the contigs' MD5s, one per line: equal if and only if all sequences are equal."""
    return hashlib.blake2b("".join(f"{contig.md5}\n" for contig in contigs).encode(), digest_size=16).hexdigest()
