"""The scripts for users: the demo data is reproducible, and the scripts report missing requirements."""

import gzip
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pysam
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASH_SCRIPTS = ["scripts/demo", "scripts/test", ".ci/run", "scripts/recipes/conda/build.sh"]


def run(*command: str | pathlib.Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_make_data_writes_the_demo_data(tmp_path: pathlib.Path) -> None:
    """Compare decompressed contents, since zlib versions may compress differently."""
    assert run(sys.executable, ROOT / "scripts/make_data", tmp_path).returncode == 0
    for made in sorted(tmp_path.iterdir()):
        assert gzip.decompress(made.read_bytes()) == gzip.decompress((ROOT / "data" / made.name).read_bytes())
        # No time and no name in the gzip header, so two runs on one machine write identical files.
        assert made.read_bytes()[3:8] == bytes(5)


def test_data_is_small_and_described() -> None:
    files = [path for path in (ROOT / "data").iterdir() if path.is_file()]
    text = (ROOT / "data/README.md").read_text()
    assert sum(path.stat().st_size for path in files) < 1_500_000
    for path in files:
        assert path.name in text or path.name == "README.md"


def test_read_names_contain_true_positions() -> None:
    """Without indels, a read has the number of mismatches to its true position that its name states."""
    with pysam.FastxFile(str(ROOT / "data/demo.fa.gz")) as fasta:
        contigs = {record.name: (record.sequence or "").upper() for record in fasta}
    complement = str.maketrans("ACGT", "TGCA")
    placed = agreeing = 0
    with pysam.FastxFile(str(ROOT / "data/demo.fq.gz")) as fastq:
        for record in fastq:
            assert record.name is not None
            assert record.sequence is not None
            _, contig, start, end, strand, _, _, _, edits, _ = record.name.split("!")
            if contig == "*":
                continue
            placed += 1
            sequence = record.sequence if strand == "+" else record.sequence.translate(complement)[::-1]
            place = contigs[contig][int(start) : int(end)]
            agreeing += sum(a != b for a, b in zip(sequence, place, strict=False)) == int(edits)
    assert agreeing > 0.97 * placed > 4_700


@pytest.mark.parametrize("name", BASH_SCRIPTS)
def test_script_is_executable_bash(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    assert run("bash", "-n", ROOT / name).returncode == 0


@pytest.fixture
def checkout(tmp_path: pathlib.Path) -> pathlib.Path:
    """A checkout without an environment, with the files that the scripts read."""
    folder = tmp_path / "check out"
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def stub(path: pathlib.Path, text: str) -> pathlib.Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("script", ["demo", "test"])
@pytest.mark.parametrize(
    ("interpreter", "message"),
    [
        ("echo 3.10", "is Python 3.10, and readmap needs 3.11 or newer"),
        (f'case "$*" in *ensurepip*) exit 1;; *) exec "{sys.executable}" "$@";; esac', "apt install python3-venv"),
        (None, "apt install python3"),
    ],
    ids=["old", "no venv", "missing"],
)
def test_scripts_report_the_required_python(
    checkout: pathlib.Path, script: str, interpreter: str | None, message: str
) -> None:
    path = checkout / "python"
    if interpreter is not None:
        stub(path, interpreter)
    done = run(checkout / "scripts" / script, cwd="/", env={**os.environ, "PYTHON": str(path)})
    assert done.returncode == 1
    assert message in done.stderr
    assert not (checkout / ".venv").exists()


def test_scripts_report_a_missing_compiler(checkout: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dirname"):
        (tools / name).symlink_to(shutil.which(name) or name)
    bash = str(tools / "bash")
    done = run(bash, checkout / "scripts/demo", env={"PATH": str(tools), "PYTHON": sys.executable})
    assert done.returncode == 1
    assert "no C++ compiler: apt install g++" in done.stderr


@pytest.mark.skipif(not (ROOT / ".venv/readmap-test.stamp").exists(), reason="the environment is not of scripts/test")
def test_demo_can_be_run_again_from_anywhere(tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        done = run(ROOT / "scripts/demo", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "samtools view demo/demo.sam" in done.stdout
    with pysam.AlignmentFile(str(ROOT / "demo/demo.sam")) as sam:
        assert sum(not record.is_unmapped for record in sam) > 4_850
    assert not list(tmp_path.iterdir())
