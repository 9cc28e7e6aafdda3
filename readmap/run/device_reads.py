"""Chunk -> DeviceReads: the reads of a chunk on one of several devices; on another one if that device fails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from readmap.backend import Backend
from readmap.reads.alignment_chunks import AlignmentChunk
from readmap.reads.chunks import Chunk, PairLayout
from readmap.reads.parsing import Reads, check_comments, pair_adjacent_reads, parse_reads
from readmap.run.devices import Devices

AnyChunk = Chunk | AlignmentChunk


class Source(NamedTuple):
    """A chunk that has not been released; comments: its reads' comments must be tags; devices: all devices."""

    chunk: AnyChunk
    comments: bool
    devices: Devices


@dataclass(frozen=True)
class DeviceReads:
    """The valid reads of a chunk, or some of them, on a device. source: the chunk, from which the reads can be parsed
    again, or None. first: index of the first of these reads in the chunk."""

    reads: Reads
    device_index: int = 0
    source: Source | None = None
    first: int = 0

    @classmethod
    def of(cls, source: Source, device_index: int) -> DeviceReads:
        """Parse the reads of a chunk on a device. If it fails, exclude it, and use another one in this thread."""
        devices = source.devices
        try:
            reads = parse_chunk(source.chunk, source.comments, devices.backends[device_index])
            return cls(reads, device_index, source)
        except devices.errors as error:
            return cls.of(source, _replace_device(devices, device_index, error))

    def part(self, first: int, last: int) -> DeviceReads:
        return replace(self, reads=self.reads.part(first, last), first=self.first + first)

    def halves(self) -> tuple[DeviceReads, DeviceReads]:
        """Return two halves, between which no pair is divided."""
        middle = self.reads.halves()[0].count
        return self.part(0, middle), self.part(middle, self.reads.count)

    def on(self, device_index: int) -> DeviceReads:
        """Return these reads on a device that the calling thread already uses: self if possible, else parsed again."""
        if device_index == self.device_index or self.source is None:
            return self
        whole = DeviceReads.of(self.source, device_index)
        return whole.part(self.first, self.first + self.reads.count)

    def exclude_device(self, error: Exception) -> int:
        """Exclude this device, which has failed with `error`, and let the calling thread use another one; return its
        index. Raise the error if no device is left."""
        if self.source is None:
            raise error
        return _replace_device(self.source.devices, self.device_index, error)

    def keep(self) -> None:
        """Keep the chunk's memory until `release`, while other chunks are read into other buffers."""
        if self.source is not None:
            self.source.chunk.keep()

    def release(self) -> None:
        """Release the chunk's memory: the reads are no longer needed."""
        if self.source is not None:
            self.source.chunk.release()


def parse_chunk(chunk: AnyChunk, comments: bool, backend: Backend) -> Reads:
    """Return the reads of a chunk before the first invalid one, on a device; comments: FASTQ comments must be tags."""
    if isinstance(chunk, AlignmentChunk):
        return chunk.to_device(backend)
    data = backend.upload(chunk.parts)
    reads = replace(parse_reads(data, chunk.reads, chunk.format.value, backend, chunk.layout), lane=chunk.lane)
    reads = check_comments(reads, backend) if comments else reads
    return pair_adjacent_reads(reads, backend) if chunk.layout is PairLayout.ADJACENT else reads


def _replace_device(devices: Devices, device_index: int, error: Exception) -> int:
    other = devices.exclude(device_index, error)
    devices.backends[other].use_thread_stream()
    return other
