"""Gaps in tandem repeats that cost as much as the differences they replace."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from examples import Read, below, fastq, index_of, random_bases
from oracles.alignment import reverse_complement
from search_runs import map_files

from readmap.backend import open_backend
from readmap.mapping.parameters import Scoring

COMPLEMENT = str.maketrans("ACGT", "TGCA")


def genome(generator: random.Random, unit: str, bases: int) -> tuple[str, str, str]:
    """Return a repeat of `bases` bases, one of them changed, and its flanks, which do not continue the repeat."""
    left, repeat, right = random_bases(generator, 200), list((unit * bases)[:bases]), random_bases(generator, 200)
    repeat[bases // 2] = next(base for base in "ACGT" if base not in unit[:2] + repeat[bases // 2])
    other = next(base for base in "ACGT" if base != unit[-1])
    return left[:-1] + other, "".join(repeat), right


def search(reads: list[str], contig: str, backends: str, folder: Path) -> list[list[str]]:
    (folder / "reads.fq").write_bytes(fastq([Read(f"r{i}", read, "I" * len(read)) for i, read in enumerate(reads)]))
    backend = open_backend(backends, 2)
    map_files([folder / "reads.fq"], index_of([contig]).to_device(backend), backend, folder / "out")
    return [line.split("\t") for line in (folder / "out").read_text().splitlines()]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("unit", "bases"), [("TC", 4), ("ACGT", 4), ("TC", -2)])
@pytest.mark.parametrize("begins_inside", [False, True])
def test_lost_or_gained_units_are_a_gap(
    backends: str, tmp_path: Path, unit: str, bases: int, reverse: bool, begins_inside: bool
) -> None:
    """The gap is as far left as possible, in a read that starts or ends within the repeat."""
    left, repeat, right = genome(random.Random(171), unit, 120)
    changed = repeat[bases:] if bases > 0 else unit + repeat
    if begins_inside:
        changed = repeat[:-bases] if bases > 0 else repeat + unit
    starts = [215, 220, 227] if begins_inside else [160, 155, 150]
    reads = [f"{left}{changed}{right}"[start : start + 140] for start in starts]
    rows = search([reverse_complement(r) if reverse else r for r in reads], left + repeat + right, backends, tmp_path)
    for row, start in zip(rows, starts, strict=True):
        tags = {tag[:2]: tag[5:] for tag in row[11:]}
        found = re.fullmatch(r"(\d+)M(\d+)([ID])(\d+)M", row[5])
        assert found
        assert int(found[2]) == abs(bases) == int(tags["NM"])
        assert (found[3] == "D") == (bases > 0)
        if not begins_inside:
            assert (int(row[3]) - 1, int(found[1])) == (start, len(left) - start)


def test_gaps_cost_no_points(backends: str, tmp_path: Path) -> None:
    """Reads of repeats that lost or gained units, with errors: the score equals that without a gap."""
    generator, scoring, found = random.Random(172), Scoring(), 0
    for unit in ("AC", "CT", "ACTG"):
        left, repeat, right = genome(generator, unit, 120)
        contig, reads = left + repeat + right, []
        for _ in range(40):
            change = len(unit) * (1 + below(generator, 2))
            donor = left + (repeat[change:] if below(generator, 3) else (unit * 2)[:change] + repeat) + right
            read = list(donor[120 + below(generator, 60) :][:130])
            for at in (below(generator, len(read)) for _ in range(below(generator, 3))):
                read[at] = "N" if below(generator, 6) == 0 else read[at].translate(COMPLEMENT)
            reads.append("".join(read))
        for read, row in zip(reads, search(reads, contig, backends, tmp_path), strict=True):
            tags = {tag[:2]: tag[5:] for tag in row[11:]}
            begin, place, score, gaps = 0, int(row[3]) - 1, 0, 0
            for count, kind in re.findall(r"(\d+)([MIDS])", row[5]):
                length = int(count)
                if kind == "M":
                    columns = zip(row[9][begin : begin + length], contig[place : place + length], strict=True)
                    score += sum(-1 if a == "N" else 1 if a == b else -4 for a, b in columns)
                elif kind != "S":
                    score, gaps = score - min(scoring.gap_open + length, scoring.long_gap), gaps + 1
                begin, place = begin + length * (kind in "MIS"), place + length * (kind in "MD")
            assert begin == len(read)
            assert score == int(tags["AS"])
            plain = max(
                sum(-1 if a == "N" else 1 if a == b else -4 for a, b in zip(row[9], contig[at:], strict=False))
                for at in range(len(contig) - len(read) + 1)
            )
            assert score >= plain
            found += score == plain and gaps == 1
    assert found > 10
