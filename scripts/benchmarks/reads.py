"""What the benchmarks of mapping share: the reference and the reads, and a search that maps these to that."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from benchmarks.common import SHARED, Options, Row, readmap, run

SIMULATOR = SHARED / "tools/simulate.py"
# reference and reads with the simulator's options, and how many times the reads are repeated
SETS = {
    "map cpu": ("10mbp.fa", "--size 10000000 --seed 11", "100k.fq", "-n 100000 --seed 12", 1),
    "map cuda": ("100mbp.fa", "--size 100000000 --seed 77 --chroms 4", "1m.fq", "-n 1000000 --seed 78", 8),
    "memory cpu": ("100mbp.fa", "--size 100000000 --seed 77 --chroms 4", "250.fq", "-n 100000 --seed 78 -l 250", 1),
}


def inputs(options: Options) -> tuple[Path, Path]:
    """The reference and the reads; those of the simulator are kept from an earlier run."""
    times, reference, reads = options.repeat or 1, options.reference, options.reads
    if reference is None:
        name, genome, reads_name, wanted, usual = SETS[f"{options.what} {options.device}"]
        reference, reads, times = options.work / name, options.work / reads_name, options.repeat or usual
        sources = f"genome {genome} -o", f"reads {shlex.quote(str(reference))} {wanted} -1"
        for target, words in zip((reference, reads), sources, strict=True):
            if not target.exists() and not SIMULATOR.exists():
                print(f"skipped: {SIMULATOR} is not there; give --reference and --reads, or set READMAP_SHARED")
                sys.exit(0)
            if not target.exists():
                part = options.work / f"part.{target.name}"
                run([sys.executable, str(SIMULATOR), *shlex.split(words), str(part)], options.work)
                part.replace(target)
    if times > 1:
        run(["cat", *map(str, [reads] * times)], options.work, many := options.work / f"{times}x.{reads.name}")
    return reference, many if times > 1 else reads


def search(options: Options, reads: Path, *more: str, **environment: str) -> tuple[Row, Row]:
    """What a search in index.readmap took, into out.sam, and what its own report tells."""
    sam = options.work / "out.sam"
    sam.unlink(missing_ok=True)  # to replace a file costs the time of freeing it
    words = (reads, "-x", options.work / "index.readmap", "-o", sam, "--device", options.device, *more)
    taken, told = readmap(options, "search", *words, **environment)
    wall, seconds = taken["wall_seconds"], told["seconds"]
    seconds["start_and_end"] = round(wall - seconds["load_index"] - seconds["search"], 4)
    rates = {"reads_a_second": round(told["counts"]["reads"] / wall), "steady_reads_a_second": told["reads_per_second"]}
    return taken | rates | {f"{name}_seconds": value for name, value in seconds.items()}, told
