"""scripts/benchmark gpus: whole commands on one GPU and on several, in turn."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Options, Row, figure, readmap, run
from benchmarks.index import digest
from benchmarks.reads import search

LETTERS = np.frombuffer(b"ACGT", np.uint8)

#: Of the reference: the part that is copies of families, their members' bases, and the bases in which copies differ.
COPIED, MEMBERS, UNIT, DIFFERENT = 0.3, 2_000, 1_000, 0.1

#: Pairs: bases of a mate, of a fragment, and the part of the bases that differ.
MATE, FRAGMENT, ERRORS = 150, 400, 0.003

#: Pairs whose records are compared before anything is timed.
CHECKED = 50_000

#: How much quicker two GPUs are, and the sizes for which that is asked.
BARS = {"search to SAM": 1.85, "sorted, duplicates marked": 1.7, "compare": 1.9, "suffix array": 1.4}
HUMAN, LONG = 3_100_000_000, 30_000_000


def benchmark_gpus(options: Options) -> tuple[Row, Row]:
    """The index, searches and a comparison; first what several GPUs write is what one does."""
    counts, inputs = (1, options.gpus), make_inputs(options)
    reference, few, many, two = inputs.reference, inputs.few, inputs.many, inputs.two
    rows = [
        row
        for name, measured in (
            ("suffix array", lambda gpus: index_row(options, reference, gpus)),
            ("search to SAM", lambda gpus: search_row(options, few, many, "/dev/null", gpus)),
            ("sorted, duplicates marked", lambda gpus: search_row(options, few, many, "out.bam", gpus)),
            ("compare", lambda gpus: compare_row(options, two, gpus)),
        )
        for row in in_turn(name, counts, measured)
    ]
    told = [row.pop("told") for row in rows if "told" in row][-1]
    asked = options.gpus == 2
    sizes = {"suffix array": options.bases >= HUMAN, "compare": options.long >= LONG}
    bars = [
        figure(
            f"{name}, {options.gpus} GPUs / one", row["times"], "times", ">=", bar if sizes.get(name, asked) else None
        )
        for name, bar in BARS.items()
        for row in rows
        if row["what"] == name and row["gpus"] == options.gpus
    ]
    return {"commands": rows, "bars": bars}, told


class Inputs(NamedTuple):
    """Files: the reference; pairs that are checked, and those that are timed; two long sequences."""

    reference: Path
    few: list[Path]
    many: list[Path]
    two: list[Path]


def make_inputs(options: Options) -> Inputs:
    """Those of an earlier run, where they are in the work folder; else drawn."""
    work, draw = options.work, np.random.default_rng(26)
    few, reads = ([work / f"{name}.{mate}.fq" for mate in (1, 2)] for name in ("few", "reads"))
    many, two = [path.with_suffix(".many") for path in reads], [work / f"{name}.fa" for name in ("one", "other")]
    made = Inputs(work / "ref.fa", few, many, two)
    if two[1].exists():
        return made
    letters = draw_reference(draw, options.bases)
    write_contigs(made.reference, letters, contigs=10)
    write_pairs(few, draw, letters, CHECKED)
    write_pairs(reads, draw, letters, options.pairs)
    for own, repeated in zip(reads, many, strict=True):
        run(["cat", *[own] * options.repeat], work, repeated)
    for path in two:
        write_contigs(path, LETTERS[draw.integers(0, 4, options.long, np.uint8)], contigs=1)
    return made


def in_turn(name: str, counts: Sequence[int], measured: Callable[[int], tuple[Row, object, Row]]) -> list[Row]:
    """The rows of a command on one GPU and on several; exits where they do not give the same.

    The last row has what the command's report tells.
    """
    found = [measured(gpus) for gpus in counts]
    if any(given != found[0][1] for _, given, _ in found):
        sys.exit(f"benchmark: {name} on several GPUs gives other bytes than on one")
    alone = found[0][0]["seconds"]
    rows = [
        {"what": name, "gpus": gpus, **row, "times": round(alone / row["seconds"], 3)}
        for gpus, (row, _, _) in zip(counts, found, strict=True)
    ]
    rows[-1]["told"] = found[-1][2]
    return rows


def index_row(options: Options, reference: Path, gpus: int) -> tuple[Row, object, Row]:
    """Seconds of the suffix array, of an index whose files are digested."""
    target = options.work / "index.readmap"
    shutil.rmtree(target, ignore_errors=True)
    taken, told = readmap(options, "index", reference, "-o", target, "--device", "cuda", "--gpus", str(gpus))
    return {"seconds": told["seconds"]["sort_suffixes"], **taken}, digest(target), told


def search_row(
    options: Options, few: Sequence[Path], many: Sequence[Path], target: str, gpus: int
) -> tuple[Row, object, Row]:
    """Seconds of the steady state to SAM, of the command without its start to BAM; and the records of a few pairs."""
    sorting = [] if target == "/dev/null" else ["--sort", "--markdup"]
    checked = options.work / ("few.bam" if sorting else "few.sam")
    more = [*sorting, "--codec", "libdeflate"] if sorting else []
    search(options, few, checked, *more, "--gpus", str(gpus))
    out = Path(target) if not sorting else options.work / target
    taken, told = (
        search(options, many, out, *sorting, "--gpus", str(gpus)) if sorting else to_nowhere(options, many, gpus)
    )
    seconds = taken["wall_seconds"] - told["seconds"]["load_index"] if sorting else told["seconds"]["search"]
    return {"seconds": round(seconds, 4), **taken, "devices": told["devices"]}, records_of(checked), told


def to_nowhere(options: Options, reads: Sequence[Path], gpus: int) -> tuple[Row, Row]:
    """A search whose records nobody keeps."""
    words = (*reads, "-x", options.work / "index.readmap", "-o", "/dev/null", "--device", "cuda", "--gpus", str(gpus))
    return readmap(options, "search", *words)


def compare_row(options: Options, two: Sequence[Path], gpus: int) -> tuple[Row, object, Row]:
    """Seconds of the score of two sequences."""
    target = options.work / "out.tsv"
    words = (*two, "--score-only", "--no-pruning", "-o", target, "--device", "cuda", "--gpus", str(gpus))
    taken, told = readmap(options, "compare", *words)
    seconds = told["counts"]["cells"] / told["gcups"] / 1e9
    return {"seconds": round(seconds, 4), "gcups": told["gcups"], **taken}, target.read_bytes(), told


def records_of(path: Path) -> bytes:
    """A digest of the records of SAM or BAM, without the command line in the header."""
    import pysam

    found = hashlib.blake2b()
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        for record in file:
            found.update(record.to_string().encode())
    return found.digest()


def draw_reference(draw: np.random.Generator, bases: int) -> NDArray[np.uint8]:
    """Letters of which some are copies of families, a little different."""
    codes = draw.integers(0, 4, bases, np.uint8)
    members = draw.integers(0, 4, (MEMBERS, UNIT), np.uint8)
    starts = draw.integers(0, max(bases // UNIT - 1, 1), int(bases * COPIED / UNIT)) * UNIT
    for begin in range(0, len(starts), 10_000):
        own = starts[begin : begin + 10_000]
        copies = members[draw.integers(0, MEMBERS, len(own))]
        changed = draw.random(copies.shape, np.float32) < DIFFERENT
        copies = np.where(changed, draw.integers(0, 4, copies.shape, np.uint8), copies)
        codes[own[:, None] + np.arange(UNIT)] = copies
    return LETTERS[codes]


def write_contigs(path: Path, letters: NDArray[np.uint8], contigs: int) -> None:
    """FASTA of contigs of one line."""
    with open(path, "wb") as file:
        for number, part in enumerate(np.array_split(letters, contigs), 1):
            file.write(b">contig%d\n" % number + part.tobytes() + b"\n")


def write_pairs(paths: Sequence[Path], draw: np.random.Generator, letters: NDArray[np.uint8], count: int) -> None:
    """FASTQ of pairs from anywhere, some bases of which differ."""
    complement = np.zeros(256, np.uint8)
    complement[LETTERS] = LETTERS[::-1]
    starts = draw.integers(0, len(letters) - FRAGMENT, count)
    names = np.char.add("@p", np.char.zfill(np.arange(count).astype("S9"), 9).astype(str)).astype("S11")
    head = names.view(np.uint8).reshape(count, 11)
    for mate, path in enumerate(paths):
        places = starts[:, None] + (np.arange(MATE) if mate == 0 else np.arange(FRAGMENT - 1, FRAGMENT - MATE - 1, -1))
        bases = letters[places] if mate == 0 else complement[letters[places]]
        wrong = draw.random(bases.shape, np.float32) < ERRORS
        bases[wrong] = LETTERS[draw.integers(0, 4, int(wrong.sum()), np.uint8)]
        lines = np.empty((count, 11 + 1 + MATE + 3 + MATE + 1), np.uint8)
        lines[:, :11], lines[:, 11], lines[:, 12 : 12 + MATE] = head, 10, bases
        lines[:, 12 + MATE : 15 + MATE] = np.frombuffer(b"\n+\n", np.uint8)
        lines[:, 15 + MATE : -1], lines[:, -1] = ord("I"), 10
        lines.tofile(path)
