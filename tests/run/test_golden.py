"""A hundred reads and a hundred pairs of a tiny genome give the SAM files of tests/golden/, byte for byte.

After an intended change of results, `pytest tests/run/test_golden.py --update-golden` rewrites the files.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from examples import Read, draw_pairs, draw_reads, fasta, fastq, small_genome
from search_runs import map_files

from readmap.backend import open_backend
from readmap.formats.sam import header
from readmap.index.building import build_index
from readmap.reads.chunks import PairLayout

FOLDER = Path(__file__).resolve().parents[1] / "golden"
READS = PAIRS = 100
#: The kept SAM: the reads that it is of, and how they are searched.
SEARCHES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "expected.sam": (["reads.fq"], {}),
    "expected_pairs.sam": (["pairs_1.fq", "pairs_2.fq"], {"layout": PairLayout.TWO_FILES}),
}


def make_inputs() -> dict[str, bytes]:
    """The files that the search is given, by name."""
    generator = random.Random(100)
    genome = small_genome(generator)
    reads = [*draw_reads(generator, genome, READS - 1), Read("empty", "", "")]
    first, second = zip(*draw_pairs(generator, genome, PAIRS), strict=True)
    mates = {"pairs_1.fq": fastq(first), "pairs_2.fq": fastq(second)}
    return {"genome.fa": fasta(genome), "reads.fq": fastq(reads), **mates}


def make_sam(device: str, folder: Path, name: str) -> bytes:
    """The SAM of kept inputs. Of @PG nothing changes from version to version."""
    backend = open_backend(device)
    index = build_index(FOLDER / "genome.fa").to_device(backend)
    reads, options = SEARCHES[name]
    map_files([FOLDER / file for file in reads], index, backend, folder / "records", **options)
    head = header(index.host.contigs, "golden", f"readmap search -x genome.fa {' '.join(reads)}")
    return head + (folder / "records").read_bytes()


@pytest.fixture(scope="module", autouse=True)
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    if request.config.getoption("--update-golden"):
        for name, data in make_inputs().items():
            (FOLDER / name).write_bytes(data)
        for name in SEARCHES:
            (FOLDER / name).write_bytes(make_sam("cpu", tmp_path_factory.mktemp("golden"), name))


@pytest.mark.parametrize("name", ["genome.fa", "reads.fq", "pairs_1.fq", "pairs_2.fq"])
def test_inputs_are_those_of_the_script(name: str) -> None:
    assert (FOLDER / name).read_bytes() == make_inputs()[name]


def by_name(sam: bytes) -> dict[str, list[str]]:
    """Records, and the lines of the header, by their first field."""
    lines: dict[str, list[str]] = {}
    for line in sam.decode().splitlines():
        lines.setdefault(line if line.startswith("@") else line.split("\t")[0], []).append(line)
    return lines


@pytest.mark.parametrize("name", SEARCHES)
def test_sam_is_the_golden_one(backends: str, tmp_path: Path, name: str) -> None:
    expected, found = (FOLDER / name).read_bytes(), make_sam(backends, tmp_path, name)
    before, after = by_name(expected), by_name(found)
    changed = [
        "\n".join([*(f"- {line}" for line in before.get(read, [])), *(f"+ {line}" for line in after.get(read, []))])
        for read in before | after
        if before.get(read) != after.get(read)
    ]
    hint = "if that is meant: pytest tests/run/test_golden.py --update-golden"
    assert not changed, "\n".join([f"{len(changed)} of {len(before)} reads changed; {hint}", *changed[:10]])
    assert found == expected


def test_golden_sam_has_something_of_everything() -> None:
    """Both strands, gaps, clips, repeats, ambiguous bases, unmapped and empty reads."""
    rows = [line.split("\t") for line in (FOLDER / "expected.sam").read_text().splitlines() if line[0] != "@"]
    assert len(rows) == READS
    assert {"0", "4", "16"} == {row[1] for row in rows}
    assert {row[2] for row in rows} >= {"one", "two", "plasmid", "*"}
    for operation in "MIDS":
        assert sum(operation in row[5] for row in rows) > 1
    assert sum(row[4] == "60" for row in rows) > 10
    assert sum(0 < int(row[4]) < 60 for row in rows) > 3
    assert any("N" in row[9] for row in rows)
    assert any(row[9] == row[10] == "*" for row in rows)


def test_golden_pairs_have_something_of_everything() -> None:
    """Fragments and none, on either strand; one mate or both without a place, split reads, other places, long gaps."""
    rows = [line.split("\t") for line in (FOLDER / "expected_pairs.sam").read_text().splitlines() if line[0] != "@"]
    flags = Counter(int(row[1]) for row in rows)
    assert sum(many for flag, many in flags.items() if not flag & 2304) == 2 * PAIRS
    assert flags.keys() >= {99, 147, 83, 163, 73, 133, 77, 141}
    assert sum(many for flag, many in flags.items() if flag & 2048) >= 5
    assert any(not flag & (2 | 4 | 8) for flag in flags)
    for tag in ("SA:Z:", "XA:Z:", "MC:Z:", "MQ:i:", "ms:i:"):
        assert sum(any(field.startswith(tag) for field in row[11:]) for row in rows) >= 5
    assert any("25I" in row[5] for row in rows)
    assert any(row[6] not in "=*" for row in rows)
    assert min(int(row[8]) for row in rows) < 0 < max(int(row[8]) for row in rows)
