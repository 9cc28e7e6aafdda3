"""Shared by the benchmarks of mapping: the reference, the reads, and a timed search."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common import SHARED, Options, Row, readmap, run

SIMULATOR = SHARED / "tools/simulate.py"
SMALL = ("10mbp.fa", "--size 10000000 --seed 11")
LARGE = ("100mbp.fa", "--size 100000000 --seed 77 --chroms 4")
# reference and reads with the simulator's options, and the repetitions of the reads
SETS = {
    "map cpu": (*SMALL, ("100k.fq",), "-n 100000 --seed 12", 1),
    "map cuda": (*LARGE, ("1m.fq",), "-n 1000000 --seed 78", 8),
    "pairs cpu": (*SMALL, ("50k.1.fq", "50k.2.fq"), "-n 50000 --seed 13", 1),
    "pairs cuda": (*LARGE, ("500k.1.fq", "500k.2.fq"), "-n 500000 --seed 78", 8),
    "dask cpu": (*SMALL, ("1m.1.fq", "1m.2.fq"), "-n 1000000 --seed 13", 1),
    "dask cuda": (*LARGE, ("500k.1.fq", "500k.2.fq"), "-n 500000 --seed 78", 160),
    "memory cpu": (*LARGE, ("250.fq",), "-n 100000 --seed 78 -l 250", 1),
}


def inputs(options: Options) -> tuple[Path, list[Path]]:
    """Return the reference and the file of reads, or two files of pairs; simulated files are reused."""
    times, reference, reads = options.repeat or 1, options.reference, options.reads
    if reference is None:
        name, genome, names, wanted, usual = SETS[f"{options.what} {options.device}"]
        reference, reads = options.work / name, [options.work / one for one in names]
        times = options.repeat or usual
        simulate(options, f"genome {genome}", ["-o"], [reference])
        simulate(options, f"reads {shlex.quote(str(reference))} {wanted}", ["-1", "-2"][: len(reads)], reads)
    if times == 1:
        return reference, reads
    many = [options.work / f"{times}x.{number}.{one.name}" for number, one in enumerate(reads, 1)]
    for one, target in zip(reads, many, strict=True):
        run(["cat", *[one] * times], options.work, target)
    return reference, many


def simulate(options: Options, words: str, names: Sequence[str], targets: Sequence[Path]) -> None:
    """Run the simulator unless all files exist. names: its options for the files."""
    if all(target.exists() for target in targets):
        return
    if not SIMULATOR.exists():
        print(f"skipped: {SIMULATOR} is not there; give --reference and --reads, or set READMAP_SHARED")
        sys.exit(0)
    parts = [target.with_name(f"part.{target.name}") for target in targets]
    files = [str(word) for option in zip(names, parts, strict=True) for word in option]
    run([sys.executable, SIMULATOR, *shlex.split(words), *files], options.work)
    for part, target in zip(parts, targets, strict=True):
        part.replace(target)


def search(options: Options, reads: Sequence[Path], target: Path, *more: str, **environment: str) -> tuple[Row, Row]:
    """Time a search in index.readmap; return its measurements, and its own report.

    The steady state is all reads divided by the time since the first chunk was requested: pairs that are buffered until
    insert sizes are known are searched once, like all others. Up to 2 MB of BAM per thread is compressed after the
    steady state, in start_and_end.
    """
    target.unlink(missing_ok=True)  # replacing a file takes the time of freeing it
    words = (*reads, "-x", options.work / "index.readmap", "-o", target, "--device", options.device, *more)
    taken, report = readmap(options, "search", *words, **environment)
    wall, seconds = taken["wall_seconds"], report["seconds"]
    seconds["start_and_end"] = round(wall - seconds["load_index"] - seconds["search"], 4)
    rates = {
        "reads_a_second": round(report["counts"]["reads"] / wall),
        "steady_reads_a_second": report["reads_per_second"],
    }
    return taken | rates | {f"{name}_seconds": value for name, value in seconds.items()}, report
