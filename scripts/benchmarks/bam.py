"""scripts/benchmark bam: map two lanes of gzip-compressed pairs to BAM and CRAM, as a sequencing centre does."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.common import Options, Row, figure, readmap, run
from benchmarks.human import genome
from benchmarks.index import touch
from benchmarks.lanes import write_lanes
from benchmarks.map import check
from benchmarks.peers import Peer, index_of, peer_of
from benchmarks.reads import search

LANES = 2
PAIRS = {"cpu": 200_000, "cuda": 30_000_000}  # pairs of all lanes
SPILLED = "5G"

MARKED, REPORTED = "sorted, duplicates marked", "sorted, marked and reported"

#: Output file and options of each run; files are in the work folder.
OUTPUTS = {
    "sorted": ("out.bam", "--sort"),
    MARKED: ("out.bam", "--sort", "--markdup", "--metrics", "metrics.txt"),
    REPORTED: ("out.bam", "--sort", "--markdup", "--metrics", "metrics.txt", "--report", "page.html"),
    "unsorted": ("out.bam",),
    "sorted, libdeflate": ("out.bam", "--sort", "--codec", "libdeflate"),
    f"sorted in {SPILLED}": ("out.bam", "--sort", "--sort-memory", SPILLED),
    "sorted CRAM": ("out.cram", "--sort"),
}
ONE_MEMBER = "sorted, of one member"

#: Target M reads/s of the whole command on a GPU.
BARS = {"sorted": 4.0, MARKED: 3.6, REPORTED: 3.6, "unsorted": 5.0, ONE_MEMBER: 3.0}
REPORTED_SHARE = 0.9  # of the rate of sorting alone

#: Commands that sort a peer's SAM, and mark duplicates.
SORTERS = {
    "sorted": "samtools sort --write-index -@ {threads} -o {target}##idx##{target}.bai -",
    MARKED: "samtools fixmate -u -m -@ {threads} - - | samtools sort -u -@ {threads} - | "
    "samtools markdup --write-index -@ {threads} - {target}##idx##{target}.bai",
}
#: Target ratio to the rate of bwa-mem2 and samtools on 16 threads, at 100 Mbp.
TIMES_THE_PEER = {"sorted": 2.0, MARKED: 3.0}


def benchmark_bam(options: Options) -> tuple[Row, Row]:
    """Time each output from the blocked files, and sorted BAM from files of one member; check all outputs."""
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
        row, report = row_of(options, [lane.blocked for lane in lanes], output, *more)
        rows.append({"output": name} | row)
        if row["reads"] != 2 * sum(lane.pairs for lane in lanes):
            sys.exit(f"benchmark: {row['reads']:,} of {2 * sum(lane.pairs for lane in lanes):,} reads were mapped")
        if peer and index and name in SORTERS:
            rows.append(peer_row(options, peer, index, [lane.blocked for lane in lanes], name, row["reads"]))
    row, _ = row_of(options, [lane.one_member for lane in lanes], "out.bam", "--sort")
    rows.append({"output": ONE_MEMBER} | row)
    held = options.device == "cuda" and not options.reference
    rates = {str(row["output"]): float(row["reads_a_second"]) / 1e6 for row in rows}
    bars = [figure(name, rates[name], "M reads/s", ">=", bar if held else None) for name, bar in BARS.items()]
    share = rates[REPORTED] / rates["sorted"]
    bars.append(figure("marked and reported / sorted alone", share, "times", ">=", REPORTED_SHARE if held else None))
    if peer:
        usual = (options.peer, options.threads, options.bases) == ("bwa-mem2", 16, None)
        for name, bar in TIMES_THE_PEER.items():
            ratio = rates[name] / rates[named(peer, name)]
            bars.append(figure(f"readmap / {named(peer, name)}", ratio, "times", ">=", bar if usual else None))
    return checked | {"commands": rows, "bars": bars}, report


def named(peer: Peer, name: str) -> str:
    """Return the name of a peer's row that is compared with readmap's row `name`."""
    return f"{peer.name} | samtools, {name}"


def peer_row(
    options: Options, peer: Peer, index: Path, lanes: Sequence[tuple[Path, Path]], name: str, count: int
) -> Row:
    """Return medians of a mapper piped into samtools, with all lanes joined to one pair of files."""
    joined = [options.work / f"lanes.{mate}.fq.gz" for mate in (1, 2)]
    for file, parts in zip(joined, zip(*lanes, strict=True), strict=True):
        run(["cat", *parts], options.work, file)
    target = options.work / "peer.bam"
    sorter = SORTERS[name].format(threads=options.threads, target=target)
    pipe = f"{shlex.join(map(str, peer.map(options, index, joined)))} | {sorter}"
    taken = [run(["bash", "-o", "pipefail", "-c", pipe], options.work) for _ in range(options.runs + 1)]
    size = target.stat().st_size
    medians = {key: median(row[key] for row in taken[1:] or taken) for key in taken[0]}
    rate = {"reads_a_second": round(count / medians["wall_seconds"])}
    return {"output": named(peer, name), "reads": count, "output_bytes": size} | medians | rate


def row_of(options: Options, lanes: Sequence[tuple[Path, Path]], output: str, *more: str) -> tuple[Row, Row]:
    """Return medians of warm searches, after an uncounted search whose output is checked, and the last report."""
    target, taken = options.work / output, []
    words = [str(options.work / word) if word.endswith((".txt", ".html")) else word for word in more]
    for number, files in enumerate(lanes, 1):
        words += ["--lane", ",".join([*map(str, files), rf"@RG\tID:L{number}\tSM:s\tLB:l"])]
    for counted in range(options.runs + 1):
        one, report = search(options, (), target, *words)
        size = target.stat().st_size
        if not counted and shutil.which("samtools"):
            run(["samtools", "quickcheck", target], options.work)
        taken.append(one)
        for file in options.work.glob(f"{output}*"):  # also its index
            file.unlink()
    medians = {key: median(row[key] for row in taken[1:] or taken) for key in taken[0]}
    return {"codec": report.get("codec"), "reads": report["counts"]["reads"], "output_bytes": size} | medians, report
