"""scripts/benchmark gpus: time whole commands on one GPU and on several, alternating."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import Options, Row, figure, readmap, run
from benchmarks.human import HUMAN, bases, genome, pairs
from benchmarks.index import digest, touch
from benchmarks.reads import search
from benchmarks.scale import USUAL, first

LETTERS = {"nucleotides": b"ACGT", "amino acids": b"ARNDCQEGHILKMFPSTWYV"}

#: Lengths of a protein of the database, and of the query.
PROTEIN, QUERY = 500, 5_000

#: Target speed-ups of two GPUs: sorting suffixes, searches to SAM and to BAM, a comparison of sequences of LONG bases.
BARS = {"index": 1.4, "sam": 1.85, "bam": 1.7, "compare": 1.9, "scan": None}
LONG = 30_000_000

#: Factor by which the reads of a second, shorter run are fewer; the difference excludes start and end.
SHORTER = 4


def benchmark_gpus(options: Options) -> tuple[Row, Row]:
    """Time the index, searches, a comparison and a scan; several GPUs must write the output of one."""
    counts, rows = (1, options.gpus), list[Row]()
    wanted = {name: measured for name, measured in MEASURED.items() if name in options.only}
    for name, measured in wanted.items():
        rows += in_turn(name, counts, options.runs, lambda gpus, measured=measured: measured(options, gpus))
    report = [row.pop("report") for row in rows if "report" in row][-1]
    has_target = dict.fromkeys(BARS, options.gpus == 2)
    has_target["index"] &= bases(options) >= HUMAN
    has_target["compare"] &= options.long >= LONG
    bars = [
        figure(
            f"{row['what']}, {options.gpus} GPUs / one",
            row["times"],
            "times",
            ">=",
            BARS[row["what"]] if has_target[row["what"]] else None,
        )
        for row in rows
        if row["gpus"] == options.gpus
    ]
    return {"commands": rows, "bars": bars}, report


def in_turn(
    name: str, counts: Sequence[int], runs: int, measured: Callable[[int], tuple[Row, object, Row]]
) -> list[Row]:
    """Return the rows of a command on one GPU and on several, each of the median run; exit if the outputs differ.

    The last row also has the command's report, as "report".
    """
    found = [[measured(gpus) for gpus in counts] for _ in range(runs)]
    if len({given for once in found for _, given, _ in once}) > 1:
        sys.exit(f"benchmark: {name} on several GPUs gives other bytes than on one")
    medians = [sorted(same, key=lambda one: one[0]["seconds"])[runs // 2] for same in zip(*found, strict=True)]
    alone = medians[0][0]["seconds"]
    rows = [
        {"what": name, "gpus": gpus, **row, "times": round(alone / row["seconds"], 3)}
        for gpus, (row, _, _) in zip(counts, medians, strict=True)
    ]
    rows[-1]["report"] = medians[-1][2]
    return rows


def index_row(options: Options, gpus: int) -> tuple[Row, object, Row]:
    """Return the seconds of the suffix array, a digest of the index, and the report."""
    reference, target = genome(options), options.work / "index.readmap"
    shutil.rmtree(target, ignore_errors=True)
    taken, report = readmap(options, "index", reference, "-o", target, "--device", "cuda", "--gpus", str(gpus))
    return {"seconds": report["seconds"]["sort_suffixes"], **taken}, digest(target), report


def sam_row(options: Options, gpus: int) -> tuple[Row, object, Row]:
    """Return the seconds of the steady state with output to /dev/null, and the records of a few pairs."""
    few, *reads = make_reads(options)
    search(options, few, checked := options.work / "few.sam", "--gpus", str(gpus))
    row, report = steady(options, reads, Path("/dev/null"), gpus, lambda _, report: report["seconds"]["search"])
    return row, records_of(checked), report


def bam_row(options: Options, gpus: int) -> tuple[Row, object, Row]:
    """Return the seconds of a sorted and marked search without loading the index, and the records of a few pairs."""
    few, *reads = make_reads(options)
    sorting = "--sort", "--markdup"
    search(options, few, checked := options.work / "few.bam", *sorting, "--codec", "libdeflate", "--gpus", str(gpus))

    def after_loading(taken: Row, report: Row) -> float:
        return float(taken["wall_seconds"] - report["seconds"]["load_index"])

    row, report = steady(options, reads, options.work / "out.bam", gpus, after_loading, *sorting)
    return row, records_of(checked), report


def steady(
    options: Options,
    reads: Sequence[Sequence[Path]],
    target: Path,
    gpus: int,
    spent: Callable[[Row, Row], float],
    *words: str,
) -> tuple[Row, Row]:
    """Return the additional seconds that many reads take compared with fewer reads.

    reads: files of fewer reads, and of many reads. spent: the seconds of a run, from its measurements and its report.
    """
    last = "--device", "cuda", "--gpus", str(gpus)
    (less, short), (taken, report) = (
        readmap(options, "search", *some, "-x", options.work / "index.readmap", "-o", target, *words, *last)
        for some in reads
    )
    whole = spent(taken, report)
    seconds = max(round(whole - spent(less, short), 4), 1e-4)
    rate = round((report["counts"]["reads"] - short["counts"]["reads"]) / seconds)
    row = {"seconds": seconds, "steady_reads_a_second": rate, "whole_seconds": round(whole, 4)}
    return row | taken | waits(report), report


def compare_row(options: Options, gpus: int) -> tuple[Row, object, Row]:
    """Return the seconds of the score of two sequences."""
    two = [options.work / f"{name}.fa" for name in ("one", "other")]
    for number, path in enumerate(two):
        write_sequences(path, "nucleotides", 1, options.long, number)
    target = options.work / "out.tsv"
    words = (*two, "--score-only", "--no-pruning", "-o", target, "--device", "cuda", "--gpus", str(gpus))
    taken, report = readmap(options, "compare", *words)
    seconds = report["counts"]["cells"] / report["gcups"] / 1e9
    return {"seconds": round(seconds, 4), "gcups": report["gcups"], **taken}, target.read_bytes(), report


def scan_row(options: Options, gpus: int) -> tuple[Row, object, Row]:
    """Return the seconds of a scan of a database of proteins, after it is loaded."""
    query, database = options.work / "query.fa", options.work / "proteins.fa"
    write_sequences(query, "amino acids", 1, QUERY, 0)
    write_sequences(database, "amino acids", options.proteins, PROTEIN, 1)
    target = options.work / "hits.tsv"
    words = (query, database, "-o", target, "--device", "cuda", "--gpus", str(gpus))
    taken, report = readmap(options, "scan", *words)
    seconds = report["counts"]["cells"] / report["gcups"] / 1e9
    return {"seconds": round(seconds, 4), "gcups": report["gcups"], **taken}, target.read_bytes(), report


MEASURED: dict[str, Callable[[Options, int], tuple[Row, object, Row]]] = {
    "index": index_row,
    "sam": sam_row,
    "bam": bam_row,
    "compare": compare_row,
    "scan": scan_row,
}


def make_reads(options: Options) -> tuple[list[Path], list[Path], list[Path]]:
    """Write a few pairs of the usual set, a quarter of the reads, and all reads; touch memory for the outputs."""
    reads = pairs(options, [USUAL])[USUAL]
    few = [first(options.work, path) for path in reads]
    some, many = ([options.work / f"{name}.{path.name}" for path in reads] for name in ("some", "many"))
    for targets, times in ((some, options.repeat // SHORTER), (many, options.repeat)):
        if not targets[-1].exists():
            for path, target in zip(reads, targets, strict=True):
                run(["cat", *[path] * times], options.work, target)
            touch(options, genome(options))
    return few, some, many


def waits(report: Row) -> Row:
    """Return the parts of a report that show what limits a search."""
    return {"devices": report["devices"], "stages": report["seconds"]}


def records_of(path: Path) -> bytes:
    """Return a digest of the records of SAM or BAM."""
    import pysam

    found = hashlib.blake2b()
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        for record in file:
            found.update(record.to_string().encode())
    return found.digest()


def write_sequences(path: Path, alphabet: str, count: int, length: int, seed: int) -> None:
    """Write FASTA of random sequences, one line each, unless the file exists."""
    if path.exists():
        return
    draw, letters = np.random.default_rng([26, seed]), np.frombuffer(LETTERS[alphabet], np.uint8)
    with open(path, "wb") as file:
        for number in range(count):
            sequence = letters[draw.integers(0, len(letters), length, np.uint8)]
            file.write(b">sequence%d\n%b\n" % (number, sequence.tobytes()))
