"""Simulated sets, single or pairs, judged read by read by the true positions in the reads' names."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pysam
from numpy.typing import NDArray

from evaluation import libraries
from evaluation.calibration import CLASSES, MATCHES, MAX_MAPQ, MIN_SCORE, NEAR, bins, calibration, in_tandem
from evaluation.figures import Result, Row, alone, few, figure, kept, many
from evaluation.records import Key, place, primaries, same_place
from evaluation.sets import FEW_SINGLE, LARGE, SIMULATED, SINGLE
from evaluation.single import compare_scores
from evaluation.work_directory import HUMAN_SCALE, WorkDirectory

SINGLE_READS = "{python} {shared}/tools/simulate.py reads {ref} --seed {seed} -1 {part}"
PAIRED_READS = f"{SINGLE_READS} -2 {{second}}"
LARGE_READS = f'{HUMAN_SCALE}mv r1.fq "$0" && mv r2.fq "{{second}}" && rm -r "$0.folder"\' {{part}} --seed {{seed}}'
# Published for two million reads simulated in the same way: share correct, and wrong with MAPQ >= 30 per million.
PUBLISHED = {
    "PD": {"minibwa 0.7": (0.98650, 10), "bwa-mem2 2.3": (0.98839, 21.5)},
    "human": {"minibwa 0.7": (0.98878, 12)},
}
RATES = (1e-3, 1e-4)  # shares of wrong reads among those kept
MIN_Z = -3
KINDS = 3  # kinds of counts: mapped reads, wrong reads, mapped random reads
Counts = NDArray[np.int64]  # class, kind, MAPQ


def simulate(work: WorkDirectory, name: str, seed: int) -> list[Path]:
    """Return one file of single reads, or two files of mates."""
    one, names = SIMULATED[name], file_names(name, f"{name}-{seed}")
    if not (one.change or one.other_library):
        return made(work, name, seed, one.options, names)
    files = made(work, name, seed, one.options, [f"{file}.simulated" for file in names])
    other = one.other_library and made(work, name, seed, one.other_library, [f"{file}.other" for file in names])

    def write(parts: list[Path]) -> None:
        fragments: libraries.Fragments = libraries.read_fragments(files)
        if one.change:
            fragments = one.change(fragments)
        if other:
            fragments = libraries.mixed(fragments, libraries.read_fragments(other))
        libraries.write_fragments(fragments, parts)

    return work.write(names, write)


def is_single(name: str) -> bool:
    return name in SINGLE or name in FEW_SINGLE


def file_names(name: str, stem: str) -> list[str]:
    return [f"{stem}.{mate}" for mate in (["fq"] if is_single(name) else ["1.fq", "2.fq"])]


def made(work: WorkDirectory, name: str, seed: int, options: str, files: list[str]) -> list[Path]:
    """Return the files of a simulation, which is run unless they exist."""
    one, second = SIMULATED[name], work.part(files[-1])
    reads = SINGLE_READS if is_single(name) else LARGE_READS if name in LARGE else PAIRED_READS
    work.make(files[0], f"{reads} {options}", ref=work.reference(one.donor or one.reference), seed=seed, second=second)
    if second.exists():
        second.replace(work.folder / files[-1])
    return [work.folder / file for file in files]


@dataclass(frozen=True)
class Repeats:
    """The reads that lie in repeats, the same for all mappers."""

    tandem: set[Key]
    family: set[Key]


def find_repeats(files: list[Path], bwa: Path) -> Repeats:
    mates = (1, 2) if len(files) > 1 else (0,)
    tandem = {(name, mate) for mate, path in zip(mates, files, strict=True) for name in in_tandem(path)}
    family = {read for read, record in primaries(bwa) if tag(record, "XS") >= max(NEAR * tag(record, "AS"), 1)}
    return Repeats(tandem, family)


def tag(record: pysam.AlignedSegment, name: str) -> int:
    return int(record.get_tag(name)) if record.has_tag(name) else 0


def classify(read: Key, record: pysam.AlignedSegment, repeats: Repeats, match: int) -> int:
    """Return the index in CLASSES of a mapped read's class. match: the mapper's score of a match."""
    score = tag(record, "AS")
    rescued = record.is_paired and score and (score < MIN_SCORE * match or tag(record, "XS") >= score)
    fits = (record.has_tag("SA"), rescued, read in repeats.tandem, read in repeats.family, True)
    return fits.index(True)


def count(path: Path, repeats: Repeats, match: int) -> tuple[Counts, list[int]]:
    """Return the mapped reads by class, kind and MAPQ, and the numbers of all reads and of reads in proper pairs."""
    mapeval = importlib.import_module("mapeval")
    counts, total = np.zeros((len(CLASSES), KINDS, MAX_MAPQ + 1), np.int64), [0, 0]
    for read, record in primaries(path):
        total[0] += 1
        total[1] += record.is_proper_pair
        if here := place(record):
            truth = mapeval.truth(*read, False, 0)
            kinds = (1, not same_place(here, truth), truth[0] == "*")
            counts[classify(read, record, repeats, match), :, min(record.mapping_quality, MAX_MAPQ)] += kinds
    return counts, total


def compare(work: WorkDirectory, stem: str, sams: dict[str, Path]) -> list[list[int]]:
    """Return, for each peer, the numbers of reads correct by the peer alone, and by the mapper alone."""
    *peers, mapper = sams
    template = "{python} {shared}/tools/mapdiff.py {one} {other}"
    only = []
    for peer in peers:
        name = f"{stem}.{mapper}.{peer}.mapdiff"
        differences = work.make(name, template, keep=False, one=sams[peer], other=sams[mapper]).read_text()
        only.append(json.loads(differences.splitlines()[-1])["all"][:2])
    return only


def simulated(work: WorkDirectory, name: str) -> Result:
    one = SIMULATED[name]
    by_seed, totals, only, scored = [], [], [], []
    for seed in range(one.seed, one.seed + min(one.seeds, work.seeds)):
        stem, files = f"{name}-{seed}", simulate(work, name, seed)
        sams = work.align(one.reference, stem, files, peers=[*work.peers])
        repeats = find_repeats(files, sams["bwa"])
        by_class, total = zip(
            *(count(sam, repeats, MATCHES.get(mapper, 1)) for mapper, sam in sams.items()), strict=True
        )
        by_seed.append(by_class)
        totals.append(total)
        only.append(compare(work, stem, sams))
        if is_single(name):
            scored.append(compare_scores(sams["bwa"], sams[work.mapper], work.reference(one.reference)))
    seeds = np.array(by_seed).swapaxes(0, 1)  # mapper, seed, class, kind, MAPQ
    pooled = seeds.sum(axis=1)
    reads, proper = np.sum(totals, axis=0).T.tolist()
    alone_right = np.sum(only, axis=0).tolist()
    figures = judge(name, seeds.sum(axis=2), reads, proper, dict(zip(work.peers, alone_right, strict=True)))
    if scored:
        not_below, compared = np.sum(scored, axis=0).tolist()
        figures.append(figure("score of CIGAR >= bwa's", (None, not_below), compared, ">="))
    counts = dict(zip(sams, pooled[:, :, :2], strict=True))
    mapq = {mapper: bins(one.sum(axis=0)) for mapper, one in counts.items()}
    return {"figures": figures, "bins": mapq, "raw": (counts, alone_right)}


def judge(name: str, seeds: Counts, reads: list[int], proper: list[int], only: dict[str, list[int]]) -> list[Row]:
    """Return the figures of a set. seeds: int64 [mapper, seed, kind, MAPQ]."""
    pooled = seeds.sum(axis=1)
    correct = (pooled[:, 0] - pooled[:, 1]).sum(axis=1).tolist()
    wrong, random = pooled[:, 1, 30:].sum(axis=1).tolist(), pooled[:, 2, 10:].sum(axis=1).tolist()
    short = [sum(row["short"] for row in bins(one[:2])) for one in pooled]
    figures = [figure("reads", reads, 0, ">=", reads[0]), figure("correct", correct, reads[0])]
    mates = 1 if is_single(name) else 2
    figures += [alone(peer, pair, len(only), MIN_Z, mates) for peer, pair in only.items()]
    for rate in RATES:
        sums = [sum(kept(seed[:2], rate) for seed in one) for one in seeds]
        figures.append(figure(f"kept at wrong/kept <= {rate:g}", sums, reads[0], ">=", many(sums, reads[0])))
    figures.append(figure("wrong with MAPQ >= 30", wrong, 0, "<=", few(wrong)))
    figures.append(figure("random reads with MAPQ >= 10", random, 0, "<=", min(random[:-1])))
    figures.append(figure("MAPQ bins with too many errors", short))
    if any(proper):
        figures.append(figure("in proper pairs", proper, reads[0]))
    for system, (share, wrongs) in PUBLISHED.get(name, {}).items():
        limits = round(share * reads[0]), int(wrongs * reads[0] / 1e6)
        figures.append(figure(f"correct, compared with {system}", correct, reads[0], "aim: >=", limits[0]))
        figures.append(figure(f"wrong with MAPQ >= 30, compared with {system}", wrong, 0, "aim: <=", limits[1]))
    return figures


def together(results: Iterable[Result], least: float) -> Result:
    """Return the figures of all simulated sets, and the calibration of MAPQ by mapper; {} for no sets.

    least: the target of McNemar's z. Removes the key "raw" from the results.
    """
    raw = [result.pop("raw") for result in results if "raw" in result]
    if not raw:
        return {}
    mappers = list(raw[0][0])
    counts = {mapper: np.sum([one[mapper] for one, _ in raw], axis=0) for mapper in mappers}
    only = np.sum([one for _, one in raw], axis=0).tolist()
    rows = {mapper: calibration(one) for mapper, one in counts.items()}
    figures = [alone(peer, pair, len(only), least) for peer, pair in zip(mappers, only, strict=False)]
    for name in ("all", *CLASSES):
        short = [sum(row["short"] for row in one if row["class"] == name) for one in rows.values()]
        figures.append(figure(f"MAPQ bins with too many errors: {name}", short, 0, "<="))
    return {"figures": figures, "calibration": rows}
