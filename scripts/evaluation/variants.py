"""Variants that bcftools calls from the mapper's alignments, beside those it calls from bwa's, by varcall_eval.py."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from evaluation.figures import Result, Row, figure, skipped
from evaluation.records import agreement, primaries
from evaluation.work_directory import BWA, BWA_INDEX, WorkDirectory, fill_in, missing

# set: first seed, options of the simulator
SIMULATED = {
    "V1": (5, "--size 2e6"),
    "V2": (
        6,
        "--size 1e6 -l 250 --insert-mean 300 --insert-sd 100 --err-scale 3 --adapter --indel 1e-3 --long-share 0.4",
    ),
    "V3": (9, "--size 1e6 -l 100 --err-scale 3 --snp 5e-3 --indel 1e-3"),
}
SEEDS = 2
CLASSES = {
    "snp": "SNPs",
    "snp:repeat": "    in repeats",
    "indel1-9": "indels of 1 to 9 bases",
    "indel10-29": "indels of 10 to 29",
    "indel30-60": "indels of 30 to 60",
}
# Recall, measured elsewhere on the first seed.
PUBLISHED = {
    "V1": {
        "minibwa 0.7": {"snp": 0.9920, "snp:repeat": 0.9853, "indel1-9": 0.9905, "indel30-60": 0.902},
        "minimap2": {"snp": 0.9905, "snp:repeat": 0.9826, "indel1-9": 0.9905, "indel30-60": 0.941},
    },
    "V2": {
        "minibwa 0.7": {"snp": 0.9761, "indel1-9": 0.9641, "indel30-60": 0.935},
        "minimap2": {"snp": 0.9609, "indel1-9": 0.9551, "indel30-60": 0.923},
    },
    "V3": {"minibwa 0.7": {"snp": 0.9739, "indel1-9": 0.9900, "indel10-29": 0.913, "indel30-60": 0.370}},
}
BARRED = "minibwa 0.7"  # whose long indels are a bar; the rest is an aim


def shell_words(work: WorkDirectory, template: str) -> str:
    """A command for varcall_eval.py, which fills in its own places and reads standard output."""
    own = {"ref": "{ref}", "r1": "{r1}", "r2": "{r2}", "index": "{idx}", "threads": "{t}"}
    values: dict[str, Any] = work.values | own | {"reads": ["{r1}", "{r2}"], "part": "/dev/stdout"}
    return shlex.join(fill_in(template, values))


def call(work: WorkDirectory, folder: str, name: str, index: str, search: str, keep: bool) -> Row:
    """What varcall_eval.py tells of a mapper; its BAM file stays in the folder."""
    mapper = f"{name}|{index and shell_words(work, index)}|{shell_words(work, search)}"
    template = "{python} {shared}/tools/varcall_eval.py call {folder} -t {threads} --mapper {mapper} --json {part}"
    path = work.make(f"{folder}.{name}.json", template, keep, folder=work.folder / folder, mapper=mapper)
    row: Row = json.loads(path.read_text())[0]
    return row


def compare(name: str, given: bool, bwa: Row, mapper: Row) -> list[Row]:
    """The figures of one seed; `given` is that of the published recalls."""
    figures = []
    published = PUBLISHED[name] if given else {}
    for kind, measure in CLASSES.items():
        counts = [row["classes"][kind]["tp"] for row in (bwa, mapper)]
        truth = bwa["classes"][kind]["truth"]
        bar, limit = {"snp:repeat": "", "indel10-29": "aim: >="}.get(kind, ">="), counts[0]
        if kind == "indel30-60" and BARRED in published:
            limit = round(published[BARRED][kind] * truth)
        figures.append(figure(measure, counts, truth, bar, limit))
        for system in [system for system in published if kind in published[system]]:
            limit = round(published[system][kind] * truth)
            figures.append(figure(f"    beside {system}", counts, truth, "aim: >=", limit))
    classes = [kind for kind in CLASSES if ":" not in kind]
    false = [sum(row["classes"][kind]["fp"] for kind in classes) for row in (bwa, mapper)]
    genotypes = [sum(row["classes"][kind]["gt_wrong"] for kind in classes) for row in (bwa, mapper)]
    return [*figures, figure("false positives", false, 0, "<=", false[0]), figure("wrong genotypes", genotypes)]


def simulated(work: WorkDirectory, name: str) -> Result:
    if reason := missing("samtools", "bcftools"):
        return {"figures": [skipped("variants", reason)]}
    first, options = SIMULATED[name]
    simulate = "{python} {shared}/tools/varcall_eval.py simulate {folder} --seed {seed} " + options
    figures = []
    for seed in range(first, first + min(SEEDS, work.seeds)):
        folder = f"{name}-{seed}"
        work.make(f"{folder}.simulated", simulate, folder=work.folder / folder, seed=seed)
        bwa = call(work, folder, "bwa", BWA_INDEX, BWA, keep=True)
        mapper = call(work, folder, work.mapper, work.index, work.search, keep=False)
        rows = compare(name, seed == first, bwa, mapper)
        bams: list[Path] = [work.folder / folder / f"{one}.bam" for one in ("bwa", work.mapper)]
        same, sure = agreement(*map(primaries, bams))
        rows.append(figure("same place as bwa's MAPQ >= 30", (None, same), sure, "aim: >="))
        figures += [row | {"measure": f"seed {seed}: {row['measure']}"} for row in rows]
    return {"figures": figures}
