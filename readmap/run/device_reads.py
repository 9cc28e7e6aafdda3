"""Chunk -> DeviceReads: the reads of a chunk on one of several devices, and again on another where that one fails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from readmap.backend import Backend
from readmap.reads.adjacent_pairs import pair_adjacent_reads
from readmap.reads.alignment_chunks import AlignmentChunk
from readmap.reads.chunks import Chunk, PairLayout
from readmap.reads.parsing import Reads, check_comments, parse_reads
from readmap.run.devices import Devices

AnyChunk = Chunk | AlignmentChunk


class Source(NamedTuple):
    """A chunk that has not been released, whether its reads' comments have to be tags, and the devices."""

    chunk: AnyChunk
    comments: bool
    devices: Devices


@dataclass(frozen=True)
class DeviceReads:
    """Reads of a chunk, all that are good or some of them, on the device of a place.

    Attributes:
        reads: what kernels take.
        place: of the device.
        source: what they can be found in again; None where they cannot.
        first: the number of the first of them among the chunk's reads.
    """

    reads: Reads
    place: int = 0
    source: Source | None = None
    first: int = 0

    @classmethod
    def of(cls, source: Source, place: int) -> DeviceReads:
        """The reads of a chunk on a device, or on another one where that fails."""
        devices = source.devices
        try:
            reads = parse_chunk(source.chunk, source.comments, devices.backends[place])
            return cls(reads, place, source)
        except devices.errors as error:
            return cls.of(source, _move(devices, place, error))

    def part(self, first: int, last: int) -> DeviceReads:
        """The records [first, last) alone."""
        return replace(self, reads=self.reads.part(first, last), first=self.first + first)

    def halves(self) -> tuple[DeviceReads, DeviceReads]:
        """As Reads.halves."""
        middle = self.reads.halves()[0].count
        return self.part(0, middle), self.part(middle, self.reads.count)

    def on(self, place: int) -> DeviceReads:
        """The same on a device, which the calling thread uses."""
        if place == self.place or self.source is None:
            return self
        whole = DeviceReads.of(self.source, place)
        return whole.part(self.first, self.first + self.reads.count)

    def elsewhere(self, error: Exception) -> DeviceReads:
        """The same on another device, which the calling thread uses from now on, since this one has failed.

        Raises the error where none is left.
        """
        return self.on(self.leave(error))

    def leave(self, error: Exception) -> int:
        """Leave out this device, which has failed: the place of another, which the calling thread uses from now on.

        Raises the error where none is left.
        """
        if self.source is None:
            raise error
        return _move(self.source.devices, self.place, error)

    def keep(self) -> None:
        """Keep the chunk's memory for longer than the way of a chunk takes; `release` ends that."""
        if self.source is not None:
            self.source.chunk.keep()

    def release(self) -> None:
        """The reads are not needed any more."""
        if self.source is not None:
            self.source.chunk.release()


def parse_chunk(chunk: AnyChunk, comments: bool, backend: Backend) -> Reads:
    """The reads of a chunk, as far as they are good; comments: whether they have to be tags, which alignments have."""
    if isinstance(chunk, AlignmentChunk):
        return chunk.to_device(backend)
    data = backend.upload(chunk.parts)
    reads = replace(parse_reads(data, chunk.reads, chunk.format.value, backend, chunk.layout), lane=chunk.lane)
    reads = check_comments(reads, backend) if comments else reads
    return pair_adjacent_reads(reads, backend) if chunk.layout is PairLayout.ADJACENT else reads


def _move(devices: Devices, place: int, error: Exception) -> int:
    other = devices.leave(place, error)
    devices.backends[other].use_thread_stream()
    return other
