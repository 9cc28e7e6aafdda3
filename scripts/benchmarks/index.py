"""scripts/benchmark index: `readmap index` of a human-like genome, stage by stage, and beside minibwa."""

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

CHECKED_LINES = 500_000  # of the FASTA, some 30 Mbp

#: Seconds, and bytes of memory, by device, size and threads.
BARS = {
    ("cuda", HUMAN, 16): {"command": 30, "sort_suffixes": 8, "check": 30, "memory": 20e9},
    ("cuda", SMALL, 16): {"command": 2.5},
    ("cpu", HUMAN, 16): {"command": 300, "memory": 32e9},
    ("cpu", SMALL, 16): {"command": 6},
}


def benchmark_index(options: Options) -> tuple[Row, Row]:
    """The index as a whole and its check, once that of the genome's beginning is the same in every way."""
    reference, work = genome(options), options.work
    checked = check(options, reference)
    target, device = work / "index.readmap", ("--device", options.device)
    size = touch(options, reference)
    rows: dict[str, list[Row]] = {}
    for _ in range(options.runs):
        shutil.rmtree(target, ignore_errors=True)
        taken, told = readmap(options, "index", reference, "-o", target, *device)
        rows.setdefault("readmap index", []).append(taken | told["seconds"])
        if peer := shutil.which("minibwa") if options.peer == "minibwa" else None:
            prefix = work / "minibwa"
            rows.setdefault("minibwa index", []).append(
                run([peer, "index", "-t", str(options.threads), reference, prefix], work)
            )
    taken, _ = readmap(options, "info", target, "--check", *device)
    rows["readmap info --check"] = [taken]
    medians = {name: {key: median(row[key] for row in one) for key in one[0]} for name, one in rows.items()}
    usual = None if options.reference else (options.device, bases(options), options.threads)
    figures = {"checked": checked, "touched_bytes": size, "runs": rows, "bars": hold_to_bars(medians, usual)}
    return figures | {"medians": [{"run": name, **row} for name, row in medians.items()]}, told


def check(options: Options, reference: Path) -> Row:
    """What was compared; ends the script where an index depends on what it must not depend on."""
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
        _, told = readmap(options, "index", few, "-o", target, *words.split())
        readmap(options, "info", target, "--check", *words.split())
        digests.add(digest(target))
    if len(digests) > 1:
        sys.exit(f"benchmark: the indexes of {', '.join(variants)} are not the same, so nothing is timed")
    return {"bases": told["bases"], "same_index": variants}


def digest(folder: Path) -> bytes:
    """Of all files of a folder."""
    found = hashlib.blake2b()
    for file in sorted(folder.iterdir()):
        with open(file, "rb") as data:
            while part := data.read(1 << 24):
                found.update(part)
    return found.digest()


def touch(options: Options, reference: Path) -> int:
    """Write a file of the output's size and delete it: a fresh virtual machine's memory grows slowly."""
    size, part = 5 * reference.stat().st_size, bytes(1 << 24)
    file = options.work / "touched"
    with open(file, "wb") as out:
        for _ in range(0, size, len(part)):
            out.write(part)
    file.unlink()
    time.sleep(1)
    return size


def hold_to_bars(medians: dict[str, Row], usual: tuple[str, int, int] | None) -> Sequence[Row]:
    """Verdicts where the genome, the device and the threads are those of a bar."""
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
