"""A whole search: a thread reads, others map, a thread writes, and buffers go round between them.

reader    chunk 0   chunk 1   chunk 2   chunk 3
mappers             0 0 0 0 0 0 W  2 2 2 2 2 2 W     W: in turn, to the writer
                              1 1 1 1 1 1 W
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from readmap.backend import Backend
from readmap.bam.sorted_output import SortedOutput
from readmap.formats.compression import ByteSource
from readmap.formats.output import ByteSink
from readmap.reads.alignment_reads import AlignmentReads
from readmap.reads.chunks import Layout, read_chunks
from readmap.search.arrivals import AnyChunk
from readmap.search.devices import Devices
from readmap.search.mappers import Item, Mappers
from readmap.search.work import Work
from readmap.search.writer import Block, Writer

#: Device memory that a byte of reads takes on its way through the stages, measured on reads of 100 to 300 bases.
WORKING_BYTES = 20

#: Buffers beside those of the chunks that are mapped: so many are being filled, and so many wait for each device.
FILLED, WAITING = 1, 1

#: Below this chunks are not made smaller beforehand: what does not fit is halved when it fails.
LEAST_CHUNK = 1 << 20


class Chunks(NamedTuple):
    """So many chunks that a device maps at once, of so many bytes of reads at most."""

    at_once: int
    nbytes: int

    @property
    def working_bytes(self) -> int:
        """Memory of the device that they take on their way through the stages."""
        return self.at_once * self.nbytes * WORKING_BYTES


#: On each of several devices, where memory suffices. Their threads share Python's lock: larger chunks want it less
#: often, and one more hides that others wait for it.
BESIDE_OTHERS = Chunks(3, 768 << 20)


def run(
    paths: Sequence[str | ByteSource] | AlignmentReads,
    outputs: Sequence[ByteSink],
    work: Work,
    backends: Sequence[Backend],
    *,
    layout: Layout | Sequence[Layout] = Layout.SINGLE,
    batch_reads: int | None = None,
    progress: Callable[[], None] | None = None,
) -> None:
    """Write the blocks of the reads of all files, each to its output; the header is the caller's.

    paths: of files, or sources that are open already, or alignments that are started. backends: the devices, in the
    order of what the work has for each; the first one has what is merged or compressed. layout: as
    read_chunks has it.
    progress: called behind every block. Those in front of a bad record, or of its pair, and of a file that cannot be
    read are written before the DataError or OSError is raised.
    """
    summary = work.summary
    began = time.perf_counter()
    at_once, chunk_bytes = plan_chunks(backends, any(isinstance(output, SortedOutput) for output in outputs))
    devices = Devices(backends, summary.warnings.append, at_once)
    backend, buffers = devices.first, FILLED + WAITING * len(backends) + devices.chunks_at_once
    chunks: Iterator[AnyChunk]
    if isinstance(paths, AlignmentReads):
        chunks = paths.chunks(backend.host_buffer, chunk_bytes, batch_reads, buffers)
    else:
        warn = summary.warnings.append
        chunks = read_chunks(
            paths, backend.host_buffer, chunk_bytes, batch_reads, backend.threads, buffers, layout=layout, warn=warn
        )
    with Writer(outputs, backend, chunk_bytes) as writer:

        def write(block: Block) -> None:
            writer.write(block)
            summary.waiting["write"] = writer.waited
            summary.seconds = time.perf_counter() - began
            if progress:
                progress()

        Mappers(_ahead(chunks), work, devices, write).run()
    summary.seconds = time.perf_counter() - began


def plan_chunks(backends: Sequence[Backend], is_sorted: bool = False) -> Chunks:
    """What each of the devices maps, which are of one kind; less where its free memory would not hold it.

    is_sorted: whether the first one has all records in the memory that is left.
    """
    memory = [held[0] for backend in backends if (held := backend.memory())]
    if len(memory) > 1 and not is_sorted and min(memory) >= BESIDE_OTHERS.working_bytes:
        return BESIDE_OTHERS
    at_once, most = backends[0].chunks_at_once, backends[0].chunk_bytes
    if memory:
        most = min(most, max(min(memory) // (WORKING_BYTES * at_once), LEAST_CHUNK))
    return Chunks(at_once, most)


def _ahead(chunks: Iterator[AnyChunk]) -> queue.Queue[Item | None]:
    """The chunks, read by a thread of their own while others are mapped; behind them, or behind an error, None."""
    ready: queue.Queue[Item | None] = queue.Queue()

    def read() -> None:
        number = 0
        try:
            for chunk in chunks:
                ready.put(Item(number, chunk))
                number += 1
        except BaseException as error:
            ready.put(Item(number, error))
        ready.put(None)

    threading.Thread(target=read, name="readmap-read", daemon=True).start()
    return ready
