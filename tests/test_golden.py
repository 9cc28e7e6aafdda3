"""A hundred reads of a tiny genome give the SAM that is kept in tests/golden/, byte for byte.

Where results are meant to change, `pytest tests/test_golden.py --update-golden` writes the files anew.
"""

import random
from pathlib import Path

import pytest
from examples import Read, draw_reads, fasta, fastq, map_files, small_genome

from readmap.backend import open_backend
from readmap.formats.sam import header
from readmap.index.index import build_index

FOLDER = Path(__file__).resolve().parent / "golden"
READS = 100


def make_inputs() -> dict[str, bytes]:
    """The files that the search is given, by name."""
    generator = random.Random(100)
    genome = small_genome(generator)
    reads = [*draw_reads(generator, genome, READS - 1), Read("empty", "", "")]
    return {"genome.fa": fasta(genome), "reads.fq": fastq(reads)}


def make_sam(device: str, folder: Path) -> bytes:
    """The SAM of the kept inputs. Of @PG nothing changes from version to version."""
    backend = open_backend(device)
    index = build_index(FOLDER / "genome.fa").place(backend)
    map_files([FOLDER / "reads.fq"], index, backend, folder / "records")
    head = header(index.host.contigs, "golden", "readmap search -x genome.fa reads.fq")
    return head + (folder / "records").read_bytes()


@pytest.fixture(scope="module", autouse=True)
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    if request.config.getoption("--update-golden"):
        for name, data in make_inputs().items():
            (FOLDER / name).write_bytes(data)
        (FOLDER / "expected.sam").write_bytes(make_sam("cpu", tmp_path_factory.mktemp("golden")))


@pytest.mark.parametrize("name", ["genome.fa", "reads.fq"])
def test_inputs_are_those_of_the_script(name: str) -> None:
    assert (FOLDER / name).read_bytes() == make_inputs()[name]


def by_name(sam: bytes) -> dict[str, str]:
    """Records, and the lines of the header, by their first field."""
    lines = sam.decode().splitlines()
    return {line if line.startswith("@") else line.split("\t")[0]: line for line in lines}


def test_sam_is_the_golden_one(backends: str, tmp_path: Path) -> None:
    expected, found = (FOLDER / "expected.sam").read_bytes(), make_sam(backends, tmp_path)
    before, after = by_name(expected), by_name(found)
    changed = [
        f"- {before.get(name)}\n+ {after.get(name)}" for name in before | after if before.get(name) != after.get(name)
    ]
    hint = "if that is meant: pytest tests/test_golden.py --update-golden"
    assert not changed, "\n".join([f"{len(changed)} of {len(before)} lines changed; {hint}", *changed[:10]])
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
