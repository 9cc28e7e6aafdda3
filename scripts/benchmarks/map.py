"""scripts/benchmark map and pairs: time the whole command and a peer's, then each stage and kernel."""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import median

import pysam

from benchmarks.common import Options, Row, figure, readmap, run
from benchmarks.peers import PEERS, index_of, peer_of
from benchmarks.reads import inputs, search
from benchmarks.stages import time_stages

FIRST = 150_000  # records per file to check: more pairs than are buffered until insert sizes are known
BOTH_MATES = 0x40 | 0x80  # SAM flags of first and second mate
BAM = "warm to BAM"


def benchmark_map(options: Options) -> tuple[Row, Row]:
    """Time the whole command, cold and warm, alternating with a peer; pairs also to BAM; and the stages."""
    (reference, reads), work = inputs(options), options.work
    paired = len(reads) > 1
    readmap(options, "index", reference, "-o", work / "index.readmap", "--force")
    checked, peer = check(options, reads), peer_of(options)
    index = index_of(peer, options, reference) if peer else None
    runs: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory(dir=work) as cache:
        for name in ("cold", *["warm"] * options.runs):
            taken, report = search(options, reads, work / "out.sam", READMAP_CACHE=cache)
            runs.setdefault(name, []).append(taken)
            if peer and name == "warm":
                taken = run(peer.map(options, index, reads), work, work / "peer.sam")
                rate = {"reads_a_second": round(report["counts"]["reads"] / taken["wall_seconds"])}
                runs.setdefault(peer.name, []).append(taken | rate)
        for _ in range(options.runs if paired else 0):
            taken, _ = search(options, reads, work / "out.bam", READMAP_CACHE=cache)
            runs.setdefault(BAM, []).append(taken)
    medians = {name: {key: median(row[key] for row in one) for key in one[0]} for name, one in runs.items()}
    rows = [{"run": name, **row} for name, row in medians.items()]
    if peer:
        ratios = {key: medians[peer.name][key] / medians["warm"][key] for key in ("wall_seconds", "cpu_seconds")}
        rows.append({"run": f"{peer.name} / warm", **{key: round(ratio, 3) for key, ratio in ratios.items()}})
    targets = [work / "stage.sam", *[work / "stage.bam"] * paired]
    stages = time_stages(options, reads, report["counts"]["reads"], targets)
    bars = compare_with_targets(options, medians) if paired else []
    return checked | {"runs": runs, "medians": rows, **stages, "bars": bars}, report


def compare_with_targets(options: Options, medians: dict[str, Row]) -> list[Row]:
    """Return rows of the speeds of pairs; with verdicts if the inputs are the default inputs."""
    usual = options.reference is None and options.repeat is None
    rows, warm = [], medians["warm"]
    for peer in (one for one in PEERS.values() if one.name in medians):
        wall, cpu = (medians[peer.name][key] / warm[key] for key in ("wall_seconds", "cpu_seconds"))
        bar = 1.5 if usual and peer.program == "bwa" else None
        rows.append(figure(f"reads/s, readmap / {peer.name}", wall, "times", ">=", bar))
        rows.append(figure(f"CPU seconds, {peer.name} / readmap", cpu, "times"))
    held = usual and options.device == "cuda"
    for name, row, bar in (("SAM", warm, 2.0), ("BAM", medians[BAM], 1.0)):
        rate = row["steady_reads_a_second"] / 1e6
        rows.append(figure(f"steady state, to {name}", rate, "M reads/s", ">=", bar if held else None))
    return rows


def check(options: Options, reads: Sequence[Path]) -> Row:
    """Compare the records of runs that must be identical; exit if they differ. Return what was compared."""
    few, several = first_records(options, reads), f"-t {max(options.threads, 2)}"
    sam, bam = options.work / "out.sam", options.work / "out.bam"
    cpu, gpu = ["-t 1", several, f"{several} --batch-reads 1000"], ["--device cpu", "--device cuda"]
    digests, variants = set(), cpu if options.device == "cpu" else gpu
    for words in variants:
        _, report = search(options, few, sam, *words.split())
        digests.add(digest(sam))
    checked = {"checked": True, "checked_reads": report["counts"]["reads"], "same_sam": variants}
    if len(reads) > 1:
        straight = sum_places(sam)
        search(options, few, bam)
        pysam.view("--no-PG", "-h", "-o", str(sam), str(bam), catch_stdout=False)
        digests.add(digest(sam))
        checked["same_sam"] = variants = [*variants, "-o out.bam"]
    if len(digests) > 1:
        sys.exit(f"benchmark: the SAM of {', '.join(variants)} differs, so nothing is timed")
    if len(reads) > 1:
        search(options, few[::-1], sam)
        if sum_places(sam, swapped=True) != straight:
            sys.exit("benchmark: mates given in the other order have other positions, so nothing is timed")
        checked["same_places"] = ["R1 R2", "R2 R1"]
    return checked


def first_records(options: Options, reads: Sequence[Path]) -> list[Path]:
    """Write files of the first FASTQ records of each file."""
    few = [options.work / f"first.{number}.fq" for number in range(1, len(reads) + 1)]
    for path, target in zip(reads, few, strict=True):
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as lines, open(target, "wb") as out:
            out.writelines(islice(lines, 4 * FIRST))
    return few


def digest(sam: Path) -> bytes:
    """Return a digest of SAM except the command line.

    Reads line by line: a child's peak memory includes its parent's.
    """
    found = hashlib.blake2b()
    with open(sam, "rb") as lines:
        for line in lines:
            found.update(re.sub(rb"\tCL:[^\t\n]*", b"", line) if line.startswith(b"@PG") else line)
    return found.digest()


def sum_places(sam: Path, swapped: bool = False) -> int:
    """Return an order-independent digest of the positions of all reads. swapped: R1 was given as R2."""
    total = 0
    with open(sam, "rb") as lines:
        for line in lines:
            if not line.startswith(b"@"):
                name, flags, contig, position, _ = line.split(b"\t", 4)
                mates = int(flags) ^ (BOTH_MATES if swapped else 0)
                place = b"%s\t%d\t%s\t%s" % (name, mates, contig, position)
                total += int.from_bytes(hashlib.blake2b(place, digest_size=8).digest())  # sums of hash() often agree
    return total
