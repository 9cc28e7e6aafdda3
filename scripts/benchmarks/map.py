"""scripts/benchmark map: the whole command beside bwa mem, then its stages and kernels one by one."""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
import sys
import tempfile
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import Options, Row, readmap, run, timed
from benchmarks.reads import inputs, search
from readmap.backend import Array, Kernel, open_backend
from readmap.formats import buffers, chunks, output
from readmap.formats.reads import find_reads
from readmap.index.device import DeviceIndex
from readmap.index.index import Index
from readmap.search import mapping, parameters, stream

ROUNDS = 3  # in which a chunk is mapped and timed, behind one that warms up
# kernels/<module>.cu: its stage, where that is not called like the module
STAGES = {"reads": "parse", "queries": "parse", "seeds": "seed", "diagonals": "windows"}
STAGES |= {"extension": "extend", "placement": "place", "sam": "format"}
BETWEEN, UNTIMED = "between kernels: host", "parse to format: no kernel timed"


def benchmark_map(options: Options) -> tuple[Row, Row]:
    """The whole command, cold and warm, in turn with bwa mem; then the stages. Also what a search told."""
    reference, reads = inputs(options)
    readmap(options, "index", reference, "-o", options.work / "index.readmap", "--force")
    checked, bwa, work = check(options, reads), reference, options.work
    if (wanted := options.peer == "bwa" and options.device == "cpu") and not (wanted := bool(shutil.which("bwa"))):
        print("bwa is not installed, so readmap runs alone")
    if wanted and not Path(f"{reference}.sa").exists():
        run(["bwa", "index", "-p", bwa := work / "bwa", reference], work)
    runs: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory(dir=work) as cache:
        for name in ("cold", *["warm"] * options.runs):
            taken, told = search(options, reads, READMAP_CACHE=cache)
            runs.setdefault(name, []).append(taken)
            if wanted and name == "warm":
                taken = run(["bwa", "mem", "-t", str(options.threads), bwa, reads], work, work / "bwa.sam")
                rate = {"reads_a_second": round(told["counts"]["reads"] / taken["wall_seconds"])}
                runs.setdefault("bwa mem", []).append(taken | rate)
    rows = [{"run": name, **{key: median(row[key] for row in one) for key in one[0]}} for name, one in runs.items()]
    if wanted:
        ratios = {key: round(rows[2][key] / rows[1][key], 3) for key in ("wall_seconds", "cpu_seconds")}
        rows.append({"run": "bwa mem / warm", **ratios})
    stages = time_stages(options, reads, told["counts"]["reads"])
    return checked | {"runs": runs, "medians": rows, "stages": stages}, told


def check(options: Options, reads: Path) -> Row:
    """What was compared; ends the script where the SAM depends on what it must not depend on."""
    few, digests, several = options.work / "first.fq", set(), f"-t {max(options.threads, 2)}"
    with (gzip.open if reads.suffix == ".gz" else open)(reads, "rb") as lines, open(few, "wb") as out:
        out.writelines(islice(lines, 400_000))  # 100,000 records of FASTQ
    cpu, gpu = ["-t 1", several, f"{several} --batch-reads 1000"], ["--device cpu", "--device cuda"]
    for words in (variants := cpu if options.device == "cpu" else gpu):
        _, told = search(options, few, *words.split())
        digest = hashlib.blake2b()
        with open(options.work / "out.sam", "rb") as sam:
            for line in sam:  # not the whole: a child's peak memory starts at its parent's
                digest.update(re.sub(rb"\tCL:[^\t\n]*", b"", line) if line.startswith(b"@PG") else line)
        digests.add(digest.digest())
    if len(digests) > 1:
        sys.exit(f"benchmark: the SAM of {', '.join(variants)} is not the same, so nothing is timed")
    return {"checked": True, "checked_reads": told["counts"]["reads"], "same_sam": variants}


def time_chunk(chunk: chunks.Chunk, placed: DeviceIndex, backend: Any) -> tuple[dict[str, float], Array]:
    """Nanoseconds a read of a chunk's stages and kernels, and its SAM; the steps are those of stream.run."""
    total, launch, scoring = dict[str, float](), backend.launch, parameters.Scoring()
    pool = buffers.BufferPool(backend.host_buffer, len(chunk.parts[0]), 1)

    def timed_launch(kernel: Kernel, count: int, *arguments: Any) -> None:
        with timed(seconds, f"{STAGES.get(kernel.module, kernel.module)}: {kernel.name}", backend):
            launch(kernel, count, *arguments)

    for seconds in ({}, *[total] * ROUNDS):
        with timed(seconds, "copy: upload", backend):
            data = backend.upload(chunk.parts)
        for stage, backend.launch in ((BETWEEN, timed_launch), (UNTIMED, launch)):
            with timed(seconds, stage, backend):
                reads = find_reads(data, chunk.records, chunk.format.value, backend)
                (sam,) = mapping.Mapping(placed, scoring, backend).lines(reads)
        with timed(seconds, "copy: download", backend):
            buffer = backend.download(sam, pool)
        buffer.release()
    total[BETWEEN] -= sum(value for name, value in total.items() if not name.startswith(("copy", BETWEEN, UNTIMED)))
    return {name: 1e9 * value / ROUNDS / chunk.records for name, value in total.items()}, buffer.data[: len(sam)]


def time_stages(options: Options, path: Path, count: int) -> list[Row]:
    """Each stage alone, in this process: all reads are read, the first chunk is mapped, and as much is written."""
    backend, io = open_backend(options.device, options.threads), dict[str, float]()
    placed, size = Index.open(options.work / "index.readmap").place(backend), stream.fitting_chunk(backend)
    free = [backend.host_buffer(size) for _ in range(chunks.BUFFERS)]
    with timed(io, "read", backend):
        for one in chunks.read_chunks([str(path)], lambda _: free.pop(), size, None, backend.threads):
            one.release()
    first = next(chunks.read_chunks([str(path)], backend.host_buffer, size))
    stages, sam = time_chunk(first, placed, backend)
    with output.open_output(str(options.work / "out.sam")) as out, timed(io, "write", backend):
        for _ in range(times := max(1, count // first.records)):
            out.write(sam)
    ns = {"read: file": 1e9 * io["read"] / count, **stages, "write: file": 1e9 * io["write"] / times / first.records}
    rows = []
    for stage in dict.fromkeys(name.split(": ")[0] for name in ns):
        parts = {name.partition(": ")[2]: round(ns[name], 1) for name in ns if name.split(": ")[0] == stage}
        rows.append({"stage": stage, "ns_a_read": round(sum(parts.values()), 1), "parts": parts})
    return rows
