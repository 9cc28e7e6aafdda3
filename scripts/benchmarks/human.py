"""Simulate a genome of human size with a human genome's repeats, and reads of it, with human_scale.py."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.common import SHARED, Options, run

SIMULATOR = SHARED / "tools/human_scale.py"
HUMAN, SMALL = 3_100_000_000, 100_000_000


class Set(NamedTuple):
    """A set of pairs: the simulator's options, and the share of the default repetitions."""

    words: str
    share: float = 0.5


SETS = {
    "150": Set("--snp 0.001 --indel 0.0001", 1.0),
    "100": Set("--snp 0.001 --indel 0.0001 -l 100"),
    "250": Set("--snp 0.001 --indel 0.0001 -l 250 --insert-mean 600"),
    "hard": Set("--snp 0.005 --indel 0.0005 --err-scale 3"),
}


def genome(options: Options) -> Path:
    """Return the FASTA: the given file, or the simulator's, reused from an earlier run."""
    if options.reference:
        return Path(options.reference)
    made = folder(options)
    if not (made / "ref.fa").exists():
        made.mkdir(exist_ok=True)
        _simulate(options, 0, "", {"ref.fa": made / "ref.fa"})
    return made / "ref.fa"


def pairs(options: Options, names: Iterable[str]) -> dict[str, list[Path]]:
    """Return the files of some sets by name, reused from an earlier run."""
    sets = {name: [folder(options) / f"{name}.{mate}.fq" for mate in (1, 2)] for name in names}
    for name, files in sets.items():
        if not all(file.exists() for file in files):
            _simulate(options, options.pairs, SETS[name].words, dict(zip(("r1.fq", "r2.fq"), files, strict=True)))
    return sets


def bases(options: Options) -> int:
    """Return the size of the simulator's genome."""
    return int(options.bases or {"cuda": HUMAN, "cpu": SMALL}[options.device])


def folder(options: Options) -> Path:
    """Return the folder of the simulator's files."""
    return Path(options.work) / f"human-{bases(options)}"


def _simulate(options: Options, count: int, words: str, wanted: dict[str, Path]) -> None:
    """Run the simulator and move some of its files to `wanted`; the genome does not depend on the reads."""
    if not SIMULATOR.exists():
        print(f"skipped: {SIMULATOR} is not there; give --reference and --reads, or set READMAP_SHARED")
        sys.exit(0)
    part = options.work / "part.human"
    shape = ["--size", bases(options), "--chroms", options.chroms, "--processes", options.processes, "--reads", count]
    run([sys.executable, SIMULATOR, part, *map(str, shape), *words.split()], options.work)
    for name, target in wanted.items():
        (part / name).rename(target)
    shutil.rmtree(part)
