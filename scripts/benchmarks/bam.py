"""scripts/benchmark bam: two lanes of distinct pairs, gzip, to BAM and CRAM as a sequencing centre wants them."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.common import Options, Row, figure, readmap, run
from benchmarks.distinct import write_lanes
from benchmarks.human import genome
from benchmarks.index import touch
from benchmarks.map import check
from benchmarks.peers import Peer, index_of, peer_of
from benchmarks.reads import search

LANES = 2
PAIRS = {"cpu": 200_000, "cuda": 30_000_000}  # of all lanes
SPILLED = "5G"

#: What is written: the output, and the options.
OUTPUTS = {
    "sorted": ("out.bam", "--sort"),
    "unsorted": ("out.bam",),
    "sorted, libdeflate": ("out.bam", "--sort", "--codec", "libdeflate"),
    f"sorted in {SPILLED}": ("out.bam", "--sort", "--sort-memory", SPILLED),
    "sorted CRAM": ("out.cram", "--sort"),
}
ONE_MEMBER = "sorted, of one member"

#: M reads/s of the whole command on a GPU.
BARS = {"sorted": 4.0, "unsorted": 5.0, ONE_MEMBER: 3.0}
TIMES_THE_PEER = 2.0  # bwa-mem2's and samtools' rate on 16 threads, at 100 Mbp


def benchmark_bam(options: Options) -> tuple[Row, Row]:
    """Each output of the blocked files, and sorted BAM of those in one member; BAM and CRAM are whole."""
    reference, work = genome(options), options.work
    readmap(options, "index", reference, "-o", work / "index.readmap", "--force")
    pairs = options.pairs or PAIRS[options.device]
    lanes = write_lanes(reference, work, LANES, pairs // LANES, options.processes)
    checked, peer = check(options, lanes[0].blocked), peer_of(options)
    (work / "out.sam").unlink()
    index = index_of(peer, options, reference) if peer else None
    touch(options, reference)
    rows = []
    for name, (output, *more) in OUTPUTS.items():
        row, told = row_of(options, [lane.blocked for lane in lanes], output, *more)
        rows.append({"output": name} | row)
        if row["reads"] != 2 * sum(lane.pairs for lane in lanes):
            sys.exit(f"benchmark: {row['reads']:,} reads came of {2 * sum(lane.pairs for lane in lanes):,}")
        if peer and name == "sorted":
            rows.append(peer_row(options, peer, index, [lane.blocked for lane in lanes], row["reads"]))
    row, _ = row_of(options, [lane.one_member for lane in lanes], "out.bam", "--sort")
    rows.append({"output": ONE_MEMBER} | row)
    held = options.device == "cuda" and not options.reference
    rates = {str(row["output"]): row["reads_a_second"] / 1e6 for row in rows}
    bars = [figure(name, rates[name], "M reads/s", ">=", bar if held else None) for name, bar in BARS.items()]
    if peer:
        bar = TIMES_THE_PEER if (options.peer, options.threads, options.bases) == ("bwa-mem2", 16, None) else None
        ratio = rates["sorted"] / rates[f"{peer.name} | samtools sort"]
        bars.append(figure(f"sorted, readmap / {peer.name} | samtools sort", ratio, "times", ">=", bar))
    return checked | {"commands": rows, "bars": bars}, told


def peer_row(options: Options, peer: Peer, index: Path, lanes: Sequence[tuple[Path, Path]], count: int) -> Row:
    """Medians of a mapper that sorts by samtools, as many threads each, all lanes as one pair of files."""
    joined = [options.work / f"lanes.{mate}.fq.gz" for mate in (1, 2)]
    for file, parts in zip(joined, zip(*lanes, strict=True), strict=True):
        run(["cat", *parts], options.work, file)
    target, threads = options.work / "peer.bam", str(options.threads)
    sort = ["samtools", "sort", "--write-index", "-@", threads, "-o", f"{target}##idx##{target}.bai", "-"]
    pipe = " | ".join(shlex.join(map(str, words)) for words in (peer.map(options, index, joined), sort))
    taken = [run(["bash", "-o", "pipefail", "-c", pipe], options.work) for _ in range(options.runs + 1)]
    size = target.stat().st_size
    medians = {key: median(row[key] for row in taken[1:] or taken) for key in taken[0]}
    name, rate = f"{peer.name} | samtools sort", round(count / medians["wall_seconds"])
    return {"output": name, "reads": count, "output_bytes": size} | medians | {"reads_a_second": rate}


def row_of(options: Options, lanes: Sequence[tuple[Path, Path]], output: str, *more: str) -> tuple[Row, Row]:
    """Medians of searches that are warm, after one that is not counted and whose output is checked."""
    target, taken, words = options.work / output, [], list(more)
    for number, files in enumerate(lanes, 1):
        words += ["--lane", ",".join([*map(str, files), rf"@RG\tID:L{number}\tSM:s\tLB:l"])]
    for counted in range(options.runs + 1):
        one, told = search(options, (), target, *words)
        size = target.stat().st_size
        if not counted and shutil.which("samtools"):
            run(["samtools", "quickcheck", target], options.work)
        taken.append(one)
        for file in options.work.glob(f"{output}*"):  # with its index
            file.unlink()
    medians = {key: median(row[key] for row in taken[1:] or taken) for key in taken[0]}
    return {"codec": told.get("codec"), "reads": told["counts"]["reads"], "output_bytes": size} | medians, told
