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

from readmap.backend import Backend
from readmap.bam.sorted_output import SortedOutput
from readmap.formats.byte_source import ByteSource
from readmap.formats.output import ByteSink
from readmap.reads.alignment_reads import AlignmentReads
from readmap.reads.chunks import PairLayout, read_chunks
from readmap.run.batch_processor import Work
from readmap.run.chunk_plan import ChunkPlan, plan_chunks
from readmap.run.device_lease import DeviceLease
from readmap.run.device_reads import AnyChunk
from readmap.run.devices import Devices
from readmap.run.mappers import Item, Mappers
from readmap.run.writer import Block, Writer


def run(
    paths: Sequence[str | ByteSource] | AlignmentReads,
    outputs: Sequence[ByteSink],
    work: Work,
    backends: Sequence[Backend],
    *,
    layout: PairLayout | Sequence[PairLayout] = PairLayout.SINGLE,
    batch_reads: int | None = None,
    plan: ChunkPlan | None = None,
    progress: Callable[[], None] | None = None,
    succession: DeviceLease | None = None,
) -> None:
    """Write the blocks of the reads of all files, each to its output; the header is the caller's.

    paths: of files, or sources that are open already, or alignments that are started. backends: the devices, in the
    order of what the work has for each; the first one has what is merged or compressed. layout: as
    read_chunks has it. plan: default, one for unsorted records by the memory that is free.
    progress: called behind every block. succession: default, one that has its devices alone. Reads in front of a bad
    record, or of its pair, and of a file that cannot be read are written before the DataError or OSError is raised.
    """
    summary, succession = work.summary, succession or DeviceLease()
    began = time.perf_counter()
    plan = plan or plan_chunks(backends)
    devices, buffers = Devices(backends, summary.warnings.append, plan.at_once), plan.buffers(len(backends))
    backend, most = devices.first, plan.nbytes
    chunks: Iterator[AnyChunk]
    if isinstance(paths, AlignmentReads):
        chunks = paths.chunks(backend.host_buffer, most, batch_reads, buffers)
    else:
        warn = summary.warnings.append
        first = most if succession.is_ahead() else None
        chunks = read_chunks(
            paths, backend.host_buffer, most, batch_reads, backend.threads, buffers, first, layout=layout, warn=warn
        )
    # What is sorted stays on the first device, and is lost with it.
    others = devices.errors if len(backends) > 1 and not any(isinstance(one, SortedOutput) for one in outputs) else ()
    with Writer(outputs, backend, most, others) as writer:

        def write(block: Block) -> None:
            writer.write(block)
            summary.waiting["write"] = writer.waited
            summary.seconds = time.perf_counter() - began
            if progress:
                progress()

        ready = _ahead(chunks, succession.end_reading)
        succession.wait_for_device()
        Mappers(ready, work, devices, write, succession.release_device).run()
    summary.seconds = time.perf_counter() - began


def _ahead(chunks: Iterator[AnyChunk], end: Callable[[], None]) -> queue.Queue[Item | None]:
    """The chunks, read by a thread of their own while others are mapped; behind them, or behind an error, None.

    end: called behind the last one.
    """
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
        end()

    threading.Thread(target=read, name="readmap-read", daemon=True).start()
    return ready
