"""scripts/benchmark scale: map several kinds of reads to a genome of human size, to SAM and to sorted BAM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.common import Options, Row, figure, readmap, run
from benchmarks.human import SETS, genome, pairs
from benchmarks.index import touch
from benchmarks.map import check
from benchmarks.reads import search
from benchmarks.stages import BETWEEN, UNTIMED, time_stages

USUAL = "150"
FEW = 10_000  # reads of a short run, most of whose time is its start and end

# Targets on a GPU: M reads/s of the usual set in steady state and of the whole command; seconds of start and end.
BARS = {"steady": 6.0, "command": 4.0, "start": 0.8}


def benchmark_scale(options: Options) -> tuple[Row, Row]:
    """Time each set in pairs, the usual set also as single reads and to sorted BAM; and all kernels."""
    reference, work = genome(options), options.work
    sets = {"given": [*options.reads]} if options.reads else pairs(options, SETS)
    readmap(options, "index", reference, "-o", work / "index.readmap", "--force")
    usual = sets.get(USUAL) or sets["given"]
    checked = check(options, usual)
    touch(options, reference)
    rows, kernels = [], dict[str, list[Row]]()
    for name, reads in sets.items():
        times = max(int(options.repeat * SETS[name].share), 1) if name in SETS else options.repeat
        kernels[name] = time_stages(options, reads, options.pairs * 2, [work / "stage.sam"])["stages"]
        shown = {"set": name, "kernels_ns_a_read": kernels_of(kernels[name])}
        many = repeated(work, reads, times)
        row, _ = row_of(options, many, "out.sam")
        rows.append(shown | row)
        if reads is usual:
            row, _ = row_of(options, many, "out.bam", "--sort")
            rows.append(shown | row)
            row, _ = row_of(options, repeated(work, reads[:1], 2 * times), "out.sam")
            rows.append(shown | row)
    row, report = row_of(options, [first(work, path) for path in usual], "out.sam")
    rows.append({"set": "few"} | row)
    return checked | {"commands": rows, "kernels": flat(kernels), "bars": compare_with_targets(options, rows)}, report


def repeated(work: Path, reads: Sequence[Path], times: int) -> list[Path]:
    """Write files of the repeated reads; the files of the set before are overwritten."""
    for file in work.glob("repeated.*.fq"):
        file.unlink()
    files = [work / f"repeated.{number}.fq" for number, _ in enumerate(reads, 1)]
    for path, file in zip(reads, files, strict=True):
        run(["cat", *[path] * times], work, file)
    return files


def first(work: Path, reads: Path) -> Path:
    """Write a file of the first reads."""
    few = work / f"few.{reads.name}"
    with open(reads, "rb") as lines, open(few, "wb") as out:
        out.writelines(line for line, _ in zip(lines, range(4 * FEW), strict=False))
    return few


def row_of(options: Options, reads: Sequence[Path], output: str, *more: str) -> tuple[Row, Row]:
    """Return medians of warm searches, after an uncounted search, and the last report."""
    target, taken = options.work / output, []
    for _ in range(options.runs + 1):
        one, report = search(options, reads, target, *more)
        taken.append(one)
    for file in options.work.glob(f"{output}*"):  # also its index
        file.unlink()
    medians = {key: median(row[key] for row in taken[1:]) for key in taken[0]}
    count = report["counts"]["reads"]
    easy = round(report["work"]["resolved"] / count, 4)
    layout = {"layout": "pairs" if len(reads) > 1 else "single", "output": " ".join([output[4:], *more])}
    return layout | {"reads": count, "easy_share": easy} | medians, report


def kernels_of(stages: Sequence[Row]) -> float:
    """Return nanoseconds per read of all kernels."""
    others = ("read", "copy", "write", BETWEEN.split(":")[0], UNTIMED.split(":")[0])
    return round(sum(row["ns_a_read"] for row in stages if row["stage"] not in others), 1)


def flat(kernels: dict[str, list[Row]]) -> list[Row]:
    return [{"set": name, **row} for name, stages in kernels.items() for row in stages]


def compare_with_targets(options: Options, rows: Sequence[Row]) -> list[Row]:
    """Return rows of the speeds of the usual sets, with verdicts on a GPU."""
    held = options.device == "cuda" and not options.reads
    found = []
    for row in (row for row in rows if row["set"] in (USUAL, "given") and "bam" not in row["output"]):
        steady, command = row["steady_reads_a_second"] / 1e6, row["reads_a_second"] / 1e6
        for what, value in (("steady", steady), ("command", command)):
            name = f"{what}, {row['layout']}"
            found.append(figure(name, value, "M reads/s", ">=", BARS[what] if held else None))
    (few,) = (row for row in rows if row["set"] == "few")
    start = figure("start and end", few["start_and_end_seconds"], "s", "<=", BARS["start"] if held else None)
    return [*found, start]
