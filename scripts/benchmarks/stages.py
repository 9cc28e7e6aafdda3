"""Time the stages and kernels of mapping separately."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.common import Options, Row, timed
from readmap.backend import Array, Backend, Kernel, buffers, open_backend
from readmap.formats.sam import SamEncoding
from readmap.index.device import DeviceIndex
from readmap.index.index import Index
from readmap.mapping import records
from readmap.mapping.batch import Context
from readmap.reads import chunks
from readmap.reads.parsing import parse_reads
from readmap.run import read_mapper
from readmap.run.chunk_plan import plan_chunks
from readmap.run.chunk_turns import exclusive_turn
from readmap.run.config import SearchConfig
from readmap.run.device_reads import DeviceReads
from readmap.run.outputs import open_records

FIRST_CHUNKS = 4  # chunks until buffers have grown
ROUNDS = 3  # timed rounds of a chunk, after a round that warms up and estimates insert sizes
# stage of kernels/FOLDER/<module>.cu, if its name differs from the module's
STAGES = {"reads": "parse", "queries": "parse", "seeds": "seed", "diagonals": "windows", "pairs": "pair"}
STAGES |= {"rescues": "pair", "fragments": "pair", "extension": "extend", "placement": "place", "sam": "format"}
BETWEEN, UNTIMED = "between kernels: host", "parse to format: no kernel timed"


def time_stages(options: Options, reads: Sequence[Path], count: int, targets: Sequence[Path]) -> dict[str, list[Row]]:
    """Time each stage separately in this process: read all reads, map one chunk, write the output of all reads.

    targets: a file of each kind of output, removed afterwards. Returns the tables stages (SAM) and stages_bam (BAM).
    """
    backend, paths = open_backend(options.device, options.threads), [*map(str, reads)]
    index, size = Index.open(options.work / "index.readmap"), plan_chunks([backend]).nbytes
    placed, layout = (
        index.to_device(backend),
        chunks.PairLayout.TWO_FILES if len(reads) > 1 else chunks.PairLayout.SINGLE,
    )
    reading = time_reading(paths, size, layout, backend) / count
    first = chunks.read_chunks(paths, backend.host_buffer, size, buffers=FIRST_CHUNKS + 1, layout=layout)
    whole = max(islice(first, FIRST_CHUNKS), key=lambda chunk: chunk.reads)
    tables = {}
    for target in targets:
        binary = target.suffix == ".bam"
        stages, lines = time_chunk(whole, placed, SamEncoding.BINARY if binary else SamEncoding.TEXT, backend)
        times, seconds = max(1, count // whole.reads), dict[str, float]()
        target.unlink(missing_ok=True)
        with (
            open_records(SearchConfig(output=str(target)), index.reference, backend) as out,
            timed(seconds, "write", backend),
        ):
            for _ in range(times):
                out.write(lines)
            out.commit()
        target.unlink()
        writing = seconds["write"] / times / whole.reads
        ns = {"read: file": 1e9 * reading, **stages, "write: file": 1e9 * writing}
        tables["stages_bam" if binary else "stages"] = tabulate(ns)
    return tables


def time_reading(paths: Sequence[str], size: int, layout: chunks.PairLayout, backend: Backend) -> float:
    """Return the seconds of reading all chunks into buffers that are allocated before."""
    free = [backend.host_buffer(size // layout.files) for _ in range(chunks.BUFFERS * layout.files)]
    seconds = dict[str, float]()
    with timed(seconds, "read", backend):
        for one in chunks.read_chunks(paths, lambda _: free.pop(), size, None, backend.threads, layout=layout):
            one.release()
    return seconds["read"]


def time_chunk(
    chunk: chunks.Chunk, placed: DeviceIndex, encoding: SamEncoding, backend: Any
) -> tuple[dict[str, float], Array]:
    """Return nanoseconds per read of a chunk's stages and kernels, and its records; follows stream.run."""
    total, launch = dict[str, float](), backend.launch
    work = read_mapper.ReadMapper([Context(placed, backend)], records.RecordStyle(encoding))
    pool = buffers.BufferPool(backend.host_buffer, sum(map(len, chunk.parts)), 1)

    def timed_launch(kernel: Kernel, items: int, **arguments: Any) -> None:
        with timed(seconds, f"{stage_of(kernel)}: {kernel.name}", backend):
            launch(kernel, items, **arguments)

    for seconds in ({}, *[total] * ROUNDS):
        with timed(seconds, "copy: upload", backend):
            data = backend.upload(chunk.parts)
        for stage, backend.launch in ((BETWEEN, timed_launch), (UNTIMED, launch)):
            with timed(seconds, stage, backend):
                reads = parse_reads(data, chunk.reads, chunk.format.value, backend, chunk.layout)
                (block,) = [*work.blocks(DeviceReads(reads), exclusive_turn()), *work.remaining_blocks()]
        with timed(seconds, "copy: download", backend):
            buffer, arrived = backend.download(block.bytes, pool)
            arrived()
        buffer.release()
    total[BETWEEN] -= sum(value for name, value in total.items() if not name.startswith(("copy", BETWEEN, UNTIMED)))
    ns = {name: 1e9 * value / ROUNDS / chunk.reads for name, value in total.items()}
    return ns, buffer.data[: len(block.bytes)]


def stage_of(kernel: Kernel) -> str:
    """Return the stage that a kernel belongs to."""
    module = kernel.module.rpartition("/")[2]
    return STAGES.get(module, module)


def tabulate(ns: dict[str, float]) -> list[Row]:
    """Return a row for each stage, from nanoseconds by `stage: part`."""
    rows = []
    for stage in dict.fromkeys(name.split(": ")[0] for name in ns):
        parts = {name.partition(": ")[2]: round(ns[name], 1) for name in ns if name.split(": ")[0] == stage}
        rows.append({"stage": stage, "ns_a_read": round(sum(parts.values()), 1), "parts": parts})
    return rows
