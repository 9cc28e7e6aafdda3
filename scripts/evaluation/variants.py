"""Compare the variants that bcftools calls from the alignments of the mapper and of its peers, with varcall_eval.py."""

from __future__ import annotations

import importlib
import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evaluation.figures import Result, Row, figure, many, skipped
from evaluation.records import agreement, primaries
from evaluation.work_directory import WorkDirectory, fill_in, missing

# set: first seed, options of the simulator
SIMULATED = {
    "V1": (5, "--size 2e6"),
    "V2": (
        6,
        "--size 1e6 -l 250 --insert-mean 300 --insert-sd 100 --err-scale 3 --adapter --indel 1e-3 --long-share 0.4",
    ),
    "V3": (9, "--size 1e6 -l 100 --err-scale 3 --snp 5e-3 --indel 1e-3"),
}
CLASSES = {
    "snp": "SNPs",
    "snp:repeat": "    in repeats",
    "indel1-9": "indels of 1 to 9 bases",
    "indel10-29": "indels of 10 to 29",
    "indel30-60": "indels of 30 to 60",
    "short:near": "SNPs and indels of 1 to 9 near longer indels",
}
NEAR = 60  # maximum distance in bases
SURE = 20  # minimum QUAL of a call, as in varcall_eval.py
ERRORS = 2  # tolerance of recall below the better peer's, in standard errors
FALSE = 2  # tolerance of false positives above bwa's


def shell_words(work: WorkDirectory, template: str) -> str:
    """Return a command for varcall_eval.py, which fills in its own placeholders and reads standard output."""
    own = {"ref": "{ref}", "r1": "{r1}", "r2": "{r2}", "index": "{idx}", "threads": "{t}"}
    values: dict[str, Any] = work.values | own | {"reads": ["{r1}", "{r2}"], "part": "/dev/stdout"}
    return shlex.join(fill_in(template, values))


def call(work: WorkDirectory, folder: str, name: str, index: str, search: str, keep: bool) -> Row:
    """Return the report of varcall_eval.py on a mapper; its BAM file remains in the folder."""
    mapper = f"{name}|{index and shell_words(work, index)}|{shell_words(work, search)}"
    template = "{python} {shared}/tools/varcall_eval.py call {folder} -t {threads} --mapper {mapper} --json {part}"
    path = work.make(f"{folder}.{name}.json", template, keep, folder=work.folder / folder, mapper=mapper)
    row: Row = json.loads(path.read_text())[0]
    return row


def near_long(folder: Path, names: Iterable[str]) -> list[Row]:
    """Count the SNPs and short indels near a long indel, and those that each mapper finds."""
    tool = importlib.import_module("varcall_eval")
    truth = tool.load_vcf(str(folder / "truth.vcf.gz"))
    spans = [(contig, at, at + len(bases)) for contig, at, bases, other in truth if abs(len(bases) - len(other)) >= 10]
    near = {
        one
        for one in truth
        if abs(len(one[2]) - len(one[3])) < 10
        and any(one[0] == contig and first - NEAR <= one[1] <= last + NEAR for contig, first, last in spans)
    }
    rows = []
    for name in names:
        calls: dict[Any, Any] = {}
        for path in sorted(folder.glob(f"{name}.*.vcf.gz")):
            calls |= tool.load_vcf(str(path))
        found = {call for call, (quality, _) in calls.items() if quality >= SURE}
        rows.append({"truth": len(near), "tp": len(near & found)})
    return rows


def compare(rows: list[list[Row]]) -> list[Row]:
    """Return the figures of all seeds. rows: for each seed the peers' and the mapper's rows."""

    def total(kinds: Iterable[str], what: str) -> list[int]:
        return [sum(row["classes"][kind][what] for kind in kinds for row in of) for of in zip(*rows, strict=True)]

    figures = []
    for kind, measure in CLASSES.items():
        found, truth = total([kind], "tp"), total([kind], "truth")[0]
        figures.append(figure(measure, found, truth, ">=", many(found, truth, ERRORS)))
    classes = [kind for kind in CLASSES if ":" not in kind]
    false = total(classes, "fp")
    figures.append(figure("false positives", false, 0, "<=", false[0] + FALSE))
    return [*figures, figure("wrong genotypes", total(classes, "gt_wrong"))]


def simulated(work: WorkDirectory, name: str) -> Result:
    if reason := missing("samtools", "bcftools"):
        return {"figures": [skipped("variants", reason)]}
    first, options = SIMULATED[name]
    simulate = "{python} {shared}/tools/varcall_eval.py simulate {folder} --seed {seed} " + options
    mappers = {**work.peers, work.mapper: (work.index, work.search)}
    rows, agreed = [], []
    for seed in range(first, first + work.seeds):
        folder = f"{name}-{seed}"
        work.make(f"{folder}.simulated", simulate, folder=work.folder / folder, seed=seed)
        called = [call(work, folder, one, *commands, one in work.peers) for one, commands in mappers.items()]
        for row, found in zip(called, near_long(work.folder / folder, mappers), strict=True):
            row["classes"]["short:near"] = found
        rows.append(called)
        bams = (work.folder / folder / f"{one}.bam" for one in ("bwa", work.mapper))
        agreed.append(agreement(*map(primaries, bams)))
    same, sure = map(sum, zip(*agreed, strict=True))
    return {"figures": [*compare(rows), figure("same place as bwa's MAPQ >= 30", (None, same), sure, "aim: >=")]}
