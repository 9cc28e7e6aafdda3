"""scripts/benchmark gpus: whole commands on one GPU and on several, in turn."""

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

#: Residues of a protein of the database, and of the query.
PROTEIN, QUERY = 500, 5_000

#: How much quicker two GPUs are: in sorting suffixes, in a search to SAM and one to BAM, and in a comparison, where the
#: sequences are LONG.
BARS = {"index": 1.4, "sam": 1.85, "bam": 1.7, "compare": 1.9, "scan": None}
LONG = 30_000_000

#: What start and end take is told by a run of fewer reads.
SHORTER = 4


def benchmark_gpus(options: Options) -> tuple[Row, Row]:
    """The index, searches, a comparison and a scan; what several GPUs write is what one does."""
    counts, rows = (1, options.gpus), list[Row]()
    wanted = {name: measured for name, measured in MEASURED.items() if name in options.only}
    for name, measured in wanted.items():
        rows += in_turn(name, counts, options.runs, lambda gpus, measured=measured: measured(options, gpus))
    told = [row.pop("told") for row in rows if "told" in row][-1]
    asked = dict.fromkeys(BARS, options.gpus == 2)
    asked["index"] &= bases(options) >= HUMAN
    asked["compare"] &= options.long >= LONG
    bars = [
        figure(
            f"{row['what']}, {options.gpus} GPUs / one",
            row["times"],
            "times",
            ">=",
            BARS[row["what"]] if asked[row["what"]] else None,
        )
        for row in rows
        if row["gpus"] == options.gpus
    ]
    return {"commands": rows, "bars": bars}, told


def in_turn(
    name: str, counts: Sequence[int], runs: int, measured: Callable[[int], tuple[Row, object, Row]]
) -> list[Row]:
    """The rows of a command on one GPU and on several, of the median run each; exits where they do not give the same.

    The last row has what the command's report tells.
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
    rows[-1]["told"] = medians[-1][2]
    return rows


def index_row(options: Options, gpus: int) -> tuple[Row, object, Row]:
    """Seconds of the suffix array, of an index whose files are digested."""
    reference, target = genome(options), options.work / "index.readmap"
    shutil.rmtree(target, ignore_errors=True)
    taken, told = readmap(options, "index", reference, "-o", target, "--device", "cuda", "--gpus", str(gpus))
    return {"seconds": told["seconds"]["sort_suffixes"], **taken}, digest(target), told


def sam_row(options: Options, gpus: int) -> tuple[Row, object, Row]:
    """Seconds of the steady state, of records that nobody keeps; and the records of a few pairs."""
    few, *reads = make_reads(options)
    search(options, few, checked := options.work / "few.sam", "--gpus", str(gpus))
    row, told = steady(options, reads, Path("/dev/null"), gpus, lambda _, told: told["seconds"]["search"])
    return row, records_of(checked), told


def bam_row(options: Options, gpus: int) -> tuple[Row, object, Row]:
    """The same of records that are sorted and marked, to the end of the command."""
    few, *reads = make_reads(options)
    sorting = "--sort", "--markdup"
    search(options, few, checked := options.work / "few.bam", *sorting, "--codec", "libdeflate", "--gpus", str(gpus))

    def after_loading(taken: Row, told: Row) -> float:
        return float(taken["wall_seconds"] - told["seconds"]["load_index"])

    row, told = steady(options, reads, options.work / "out.bam", gpus, after_loading, *sorting)
    return row, records_of(checked), told


def steady(
    options: Options,
    reads: Sequence[Sequence[Path]],
    target: Path,
    gpus: int,
    spent: Callable[[Row, Row], float],
    *words: str,
) -> tuple[Row, Row]:
    """By how many seconds many reads take longer than some.

    reads: some, and many. spent: seconds, of what a run took and what it tells.
    """
    last = "--device", "cuda", "--gpus", str(gpus)
    (less, short), (taken, told) = (
        readmap(options, "search", *some, "-x", options.work / "index.readmap", "-o", target, *words, *last)
        for some in reads
    )
    whole = spent(taken, told)
    seconds = max(round(whole - spent(less, short), 4), 1e-4)
    rate = round((told["counts"]["reads"] - short["counts"]["reads"]) / seconds)
    row = {"seconds": seconds, "steady_reads_a_second": rate, "whole_seconds": round(whole, 4)}
    return row | taken | waits(told), told


def compare_row(options: Options, gpus: int) -> tuple[Row, object, Row]:
    """Seconds of the score of two sequences."""
    two = [options.work / f"{name}.fa" for name in ("one", "other")]
    for number, path in enumerate(two):
        write_sequences(path, "nucleotides", 1, options.long, number)
    target = options.work / "out.tsv"
    words = (*two, "--score-only", "--no-pruning", "-o", target, "--device", "cuda", "--gpus", str(gpus))
    taken, told = readmap(options, "compare", *words)
    seconds = told["counts"]["cells"] / told["gcups"] / 1e9
    return {"seconds": round(seconds, 4), "gcups": told["gcups"], **taken}, target.read_bytes(), told


def scan_row(options: Options, gpus: int) -> tuple[Row, object, Row]:
    """Seconds of a database of proteins, once it is there."""
    query, database = options.work / "query.fa", options.work / "proteins.fa"
    write_sequences(query, "amino acids", 1, QUERY, 0)
    write_sequences(database, "amino acids", options.proteins, PROTEIN, 1)
    target = options.work / "hits.tsv"
    words = (query, database, "-o", target, "--device", "cuda", "--gpus", str(gpus))
    taken, told = readmap(options, "scan", *words)
    seconds = told["counts"]["cells"] / told["gcups"] / 1e9
    return {"seconds": round(seconds, 4), "gcups": told["gcups"], **taken}, target.read_bytes(), told


MEASURED: dict[str, Callable[[Options, int], tuple[Row, object, Row]]] = {
    "index": index_row,
    "sam": sam_row,
    "bam": bam_row,
    "compare": compare_row,
    "scan": scan_row,
}


def make_reads(options: Options) -> tuple[list[Path], list[Path], list[Path]]:
    """A few pairs of the usual set, a quarter of many, and many; memory that outputs will take has been touched."""
    reads = pairs(options, [USUAL])[USUAL]
    few = [first(options.work, path) for path in reads]
    some, many = ([options.work / f"{name}.{path.name}" for path in reads] for name in ("some", "many"))
    for targets, times in ((some, options.repeat // SHORTER), (many, options.repeat)):
        if not targets[-1].exists():
            for path, target in zip(reads, targets, strict=True):
                run(["cat", *[path] * times], options.work, target)
            touch(options, genome(options))
    return few, some, many


def waits(told: Row) -> Row:
    """What limits a search."""
    return {"devices": told["devices"], "stages": told["seconds"]}


def records_of(path: Path) -> bytes:
    """A digest of the records of SAM or BAM, without the command line in the header."""
    import pysam

    found = hashlib.blake2b()
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        for record in file:
            found.update(record.to_string().encode())
    return found.digest()


def write_sequences(path: Path, alphabet: str, count: int, length: int, seed: int) -> None:
    """FASTA of random sequences of one line each, kept from an earlier run."""
    if path.exists():
        return
    draw, letters = np.random.default_rng([26, seed]), np.frombuffer(LETTERS[alphabet], np.uint8)
    with open(path, "wb") as file:
        for number in range(count):
            sequence = letters[draw.integers(0, len(letters), length, np.uint8)]
            file.write(b">sequence%d\n%b\n" % (number, sequence.tobytes()))
