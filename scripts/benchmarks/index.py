"""scripts/benchmark index: time `readmap index` of a human-like genome, stage by stage, and minibwa's index."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import median

from benchmarks.common import Options, Row, figure, readmap, run
from benchmarks.human import HUMAN, SMALL, bases, genome

CHECKED_LINES = 500_000  # lines of the FASTA, about 30 Mbp

#: Target seconds, and bytes of memory, by device, genome size and threads.
BARS = {
    ("cuda", HUMAN, 16): {"command": 30, "sort_suffixes": 8, "check": 30, "memory": 20e9},
    ("cuda", SMALL, 16): {"command": 2.5},
    ("cpu", HUMAN, 16): {"command": 300, "memory": 32e9},
    ("cpu", SMALL, 16): {"command": 6},
}


def benchmark_index(options: Options) -> tuple[Row, Row]:
    """Time the index and its check, after checking that it does not depend on device and threads."""
    reference, work = genome(options), options.work
    checked = check(options, reference)
    target, device = work / "index.readmap", ("--device", options.device)
    size = touch(options, reference)
    rows: dict[str, list[Row]] = {}
    for _ in range(options.runs):
        shutil.rmtree(target, ignore_errors=True)
        taken, report = readmap(options, "index", reference, "-o", target, *device)
        rows.setdefault("readmap index", []).append(taken | report["seconds"])
        if peer := shutil.which("minibwa") if options.peer == "minibwa" else None:
            prefix = work / "minibwa"
            rows.setdefault("minibwa index", []).append(
                run([peer, "index", "-t", str(options.threads), reference, prefix], work)
            )
    taken, _ = readmap(options, "info", target, "--check", *device)
    rows["readmap info --check"] = [taken]
    medians = {name: {key: median(row[key] for row in one) for key in one[0]} for name, one in rows.items()}
    usual = None if options.reference else (options.device, bases(options), options.threads)
    figures = {"checked": checked, "touched_bytes": size, "runs": rows, "bars": compare_with_targets(medians, usual)}
    return figures | {"medians": [{"run": name, **row} for name, row in medians.items()]}, report


def check(options: Options, reference: Path) -> Row:
    """Compare the indexes of runs that must be identical; exit if they differ. Return what was compared."""
    few = options.work / "few.fa"
    with (gzip.open if reference.suffix == ".gz" else open)(reference, "rb") as lines, open(few, "wb") as out:
        out.writelines(islice(lines, CHECKED_LINES))
    several = f"-t {max(options.threads, 2)}"
    variants = [
        "--device cpu -t 1",
        f"--device cpu {several}",
        *[f"--device cuda {several}"] * (options.device != "cpu"),
    ]
    digests, target = set(), options.work / "few.readmap"
    for words in variants:
        shutil.rmtree(target, ignore_errors=True)
        _, report = readmap(options, "index", few, "-o", target, *words.split())
        readmap(options, "info", target, "--check", *words.split())
        digests.add(digest(target))
    if len(digests) > 1:
        sys.exit(f"benchmark: the indexes of {', '.join(variants)} differ, so nothing is timed")
    return {"bases": report["bases"], "same_index": variants}


def digest(folder: Path) -> bytes:
    """Return a digest of all files of a folder."""
    found = hashlib.blake2b()
    for file in sorted(folder.iterdir()):
        with open(file, "rb") as data:
            while part := data.read(1 << 24):
                found.update(part)
    return found.digest()


def touch(options: Options, reference: Path) -> int:
    """Write and delete a file of the output's size, since the memory of a fresh virtual machine grows slowly."""
    size, part = 5 * reference.stat().st_size, bytes(1 << 24)
    file = options.work / "touched"
    with open(file, "wb") as out:
        for _ in range(0, size, len(part)):
            out.write(part)
    file.unlink()
    time.sleep(1)
    return size


def compare_with_targets(medians: dict[str, Row], usual: tuple[str, int, int] | None) -> Sequence[Row]:
    """Return rows of the figures, with verdicts if genome, device and threads have targets."""
    bars, own = BARS.get(usual, {}) if usual else {}, medians["readmap index"]
    rows = [
        figure("whole command", own["wall_seconds"], "s", "<=", bars.get("command")),
        figure("suffixes in order", own["sort_suffixes"], "s", "<=", bars.get("sort_suffixes")),
        figure("peak memory", own["peak_memory_bytes"] / 1e9, "GB", "<=", bars.get("memory", 0) / 1e9 or None),
        figure("info --check", medians["readmap info --check"]["wall_seconds"], "s", "<=", bars.get("check")),
    ]
    if peer := medians.get("minibwa index"):
        rows.append(figure("minibwa / readmap", peer["wall_seconds"] / own["wall_seconds"], "times"))
    return rows
