"""The simulated sets: reference, seed and options of the simulator."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation import libraries
from evaluation.libraries import Change


@dataclass(frozen=True)
class SimulatedSet:
    """A simulated set.

    Attributes:
        reference: the genome that reads are mapped to. seed: first seed; further simulations have the next seeds.
        options: options of simulate.py, or of human_scale.py. donor: the genome that reads are simulated from, if not
            `reference`. other_library: options of another library, whose fragments are mixed in after the change.
    """

    reference: str
    seed: int
    options: str
    seeds: int = 5
    donor: str = ""
    change: Change | None = None
    other_library: str = ""


HARD = "--err-scale 3 --snp 0.005 --indel 0.0005"
FAMILIES = "-n 30000 --insert-mean 350 --insert-sd 70"
WIDE = "-n 30000 -l 100 --insert-mean 500 --insert-sd 220"
# The same error rate at both ends, since the reads are reversed.
OUTWARD = "-l 100 --insert-mean 2500 --insert-sd 250 --err-start 0.003 --err-end 0.003"
SINGLE = {
    "A": SimulatedSet("A10", 12, "-n 100000"),
    "B": SimulatedSet("A10", 22, "-n 100000 -l 100 --snp 0.01 --indel 0.002 --err-scale 3 --random-frac 0.02"),
    "C": SimulatedSet("human", 32, "-n 100000 --snp 0.002 --indel 0.0003 --err-scale 2"),
    "D": SimulatedSet("A10", 42, "-n 100000 -l 36 --snp 0.001 --random-frac 0.02"),
    "E": SimulatedSet("A10", 47, "-n 50000 -l 300 --err-scale 3 --snp 0.002 --indel 0.0005"),
    "ecoli_50": SimulatedSet("mg1655", 101, "-n 60000 -l 50"),
    "ecoli_75": SimulatedSet("mg1655", 111, "-n 60000 -l 75 --err-scale 3 --snp 0.005"),
    "ecoli_150": SimulatedSet("mg1655", 121, "-n 60000 -l 150 --snp 0.01"),
    "yeast_75": SimulatedSet("sacCer3", 131, "-n 60000 -l 75"),
    "yeast_100": SimulatedSet("sacCer3", 141, "-n 60000 -l 100 --err-scale 3 --snp 0.01"),
    "yeast_250": SimulatedSet("sacCer3", 151, "-n 60000 -l 250 --snp 0.005"),
    "snps5": SimulatedSet("A10", 201, "-n 30000 --snp 0.05"),
    "snps8": SimulatedSet("A10", 211, "-n 30000 --snp 0.08"),
    "snps12": SimulatedSet("A10", 221, "-n 30000 --snp 0.12"),
    "random": SimulatedSet("D100", 231, "-n 1000000 --random-frac 1", seeds=1),
}
PAIRS = {
    "PA": SimulatedSet("A10", 13, "-n 50000"),
    "PB": SimulatedSet("A10", 23, "-n 50000 -l 100 --snp 0.01 --indel 0.002 --err-scale 3 --random-frac 0.02"),
    "PC": SimulatedSet("human", 33, "-n 50000 --snp 0.002 --indel 0.0003 --err-scale 2"),
    "PD": SimulatedSet("D100", 80, f"-n 500000 {HARD}", seeds=1),
    "families0_100": SimulatedSet("families0", 7, f"{FAMILIES} -l 100"),
    "families0_150": SimulatedSet("families0", 17, f"{FAMILIES} -l 150"),
    "families0.5_100": SimulatedSet("families0.5", 27, f"{FAMILIES} -l 100"),
    "families0.5_150": SimulatedSet("families0.5", 37, f"{FAMILIES} -l 150"),
    "families2_100": SimulatedSet("families2", 47, f"{FAMILIES} -l 100"),
    "families2_150": SimulatedSet("families2", 57, f"{FAMILIES} -l 150"),
    "wide_families": SimulatedSet("families0", 67, WIDE),
    "wide_ecoli": SimulatedSet("mg1655", 77, WIDE),
    "outward_families": SimulatedSet("families0", 87, f"-n 30000 {OUTWARD}", change=libraries.outward),
    "outward_ecoli": SimulatedSet("mg1655", 97, f"-n 30000 {OUTWARD}", change=libraries.outward),
    "mate_pairs": SimulatedSet(
        "families0",
        331,
        f"-n 20000 {OUTWARD}",
        change=libraries.outward,
        other_library="-n 10000 -l 100 --insert-sd 80",
    ),
    "two_libraries": SimulatedSet(
        "families0",
        341,
        "-n 20000 -l 100 --insert-mean 250 --insert-sd 30",
        other_library="-n 10000 -l 100 --insert-mean 480 --insert-sd 60",
    ),
    "half_deviation": SimulatedSet("families0", 351, "-n 30000 -l 75 --insert-mean 300 --insert-sd 180"),
    "few_mapped": SimulatedSet("mg1655", 361, "-n 100000 -l 100 --random-frac 0.97"),
    "lost_mates": SimulatedSet("families0", 371, f"{FAMILIES} -l 100", change=libraries.half_random),
    "ecoli_50_pairs": SimulatedSet("mg1655", 161, "-n 30000 -l 50"),
    "ecoli_100_pairs": SimulatedSet("mg1655", 171, "-n 30000 -l 100 --err-scale 3"),
    "ecoli_250_pairs": SimulatedSet("mg1655", 181, "-n 30000 -l 250 --err-scale 3 --snp 0.01"),
    "yeast_50_pairs": SimulatedSet("sacCer3", 191, "-n 30000 -l 50 --err-scale 3 --snp 0.005"),
    "yeast_75_pairs": SimulatedSet("sacCer3", 241, "-n 30000 -l 75 --snp 0.01"),
    "yeast_150_pairs": SimulatedSet("sacCer3", 251, "-n 30000 -l 150 --err-scale 3"),
    "snps8_pairs": SimulatedSet("A10", 261, "-n 30000 --snp 0.08"),
    "adapters": SimulatedSet(
        "A10", 271, "-n 30000 -l 90 --insert-mean 90 --insert-sd 0", change=libraries.read_through
    ),
    "origin": SimulatedSet("mg1655", 281, "-n 20000", donor="origin", change=libraries.circular),
    "chimeras": SimulatedSet("mg1655", 291, "-n 30000", change=libraries.chimeric),
    "guests": SimulatedSet("sacCer3", 301, "-n 30000 -l 100", donor="guests", change=libraries.foreign),
    "alternatives": SimulatedSet("alternatives", 311, "-n 50000 --snp 0.002", donor="human"),
    "random_pairs": SimulatedSet("D100", 321, "-n 500000 --random-frac 1", seeds=1),
}
# Simulated by human_scale.py, with the genome's seed.
LARGE = {
    "human400": SimulatedSet("H400", 1, "--size 4e8 --reads 500000", seeds=1),
    "human": SimulatedSet("H3100", 1, "--size 3.1e9 --reads 1000000", seeds=1),
    "human_hard": SimulatedSet("H3100", 1, f"--size 3.1e9 --reads 1000000 {HARD}", seeds=1),
}
# Small sets, which run with the tests.
FEW_SINGLE = {"few_reads": SimulatedSet("families0", 401, "-n 3000 -l 75 --err-scale 3 --snp 0.01", seeds=1)}
FEW_PAIRS = {
    "few_families": SimulatedSet("families0", 411, "-n 1000 -l 100 --insert-mean 350 --insert-sd 70", seeds=1),
    "few_chimeras": SimulatedSet("families0", 421, "-n 1000", seeds=1, change=libraries.chimeric),
}
SIMULATED = SINGLE | PAIRS | LARGE | FEW_SINGLE | FEW_PAIRS
