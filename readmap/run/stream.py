"""The threads of a run: one reads, others map, one writes; buffers circulate between them.

reader    chunk 0   chunk 1   chunk 2   chunk 3
mappers             0 0 0 0 0 0 W  2 2 2 2 2 2 W     W: writes in turn
                              1 1 1 1 1 1 W
"""

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
from readmap.run.batch_processor import BatchProcessor
from readmap.run.chunk_plan import ChunkPlan, plan_chunks
from readmap.run.chunk_turns import DeviceLease
from readmap.run.device_reads import AnyChunk
from readmap.run.devices import Devices
from readmap.run.mappers import Item, Mappers
from readmap.run.writer import Block, Writer


def run(
    paths: Sequence[str | ByteSource] | AlignmentReads,
    outputs: Sequence[ByteSink],
    processor: BatchProcessor,
    backends: Sequence[Backend],
    *,
    layout: PairLayout | Sequence[PairLayout] = PairLayout.SINGLE,
    batch_reads: int | None = None,
    plan: ChunkPlan | None = None,
    progress: Callable[[], None] | None = None,
    lease: DeviceLease | None = None,
) -> None:
    """Process all reads and write their blocks, each to its output; the caller writes the header. paths: file paths,
    open sources, or alignments that have been started. backends: the devices, in the processor's order; the first
    device merges and compresses. layout: one for each lane, as in read_chunks. plan: default, by the free memory.
    progress: called after every block. lease: default, the search has its devices alone.

    Reads before an invalid record, or before its pair, and before a file that cannot be read are written before the
    DataError or OSError is raised."""
    summary, lease = processor.summary, lease or DeviceLease()
    start = time.perf_counter()
    plan = plan or plan_chunks(backends)
    devices, buffers = Devices(backends, summary.warnings.append, plan.at_once), plan.buffers(len(backends))
    backend, limit = devices.backends[0], plan.nbytes
    chunks: Iterator[AnyChunk]
    if isinstance(paths, AlignmentReads):
        chunks = paths.chunks(backend.host_buffer, limit, batch_reads, buffers)
    else:
        warn = summary.warnings.append
        first = limit if lease.is_ahead() else None
        chunks = read_chunks(
            paths, backend.host_buffer, limit, batch_reads, backend.threads, buffers, first, layout=layout, warn=warn
        )
    # Sorted runs stay on the first device and are lost with it, so no other device can take over.
    others = devices.errors if len(backends) > 1 and not any(isinstance(one, SortedOutput) for one in outputs) else ()
    with Writer(outputs, backend, limit, others) as writer:

        def write(block: Block) -> None:
            writer.write(block)
            summary.waiting["write"] = writer.waited
            summary.seconds = time.perf_counter() - start
            if progress:
                progress()

        ready = _read_ahead(chunks, lease.end_reading)
        lease.wait_for_device()
        Mappers(ready, processor, devices, write, lease.release_device).run()
    summary.seconds = time.perf_counter() - start


def _read_ahead(chunks: Iterator[AnyChunk], end: Callable[[], None]) -> queue.Queue[Item | None]:
    """Start a thread that reads chunks, or the error of reading, into the queue, puts None and calls `end`."""
    ready: queue.Queue[Item | None] = queue.Queue()

    def read() -> None:
        position = 0
        try:
            for chunk in chunks:
                ready.put(Item(position, chunk))
                position += 1
        except BaseException as error:
            ready.put(Item(position, error))
        ready.put(None)
        end()

    threading.Thread(target=read, name="readmap-read", daemon=True).start()
    return ready
