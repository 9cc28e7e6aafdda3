"""Fixtures: a folder with the files that the examples of the documentation use."""

import gzip
import os
import runpy
import shutil
import stat
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: The samtools that pysam contains, so that the machine needs none.
SAMTOOLS = """#!{python}
import sys
import pysam
name = {{"import": "fqimport"}}.get(sys.argv[1], sys.argv[1])
getattr(pysam, name)(*sys.argv[2:], catch_stdout=False)
"""


@pytest.fixture(scope="session")
def example_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with ref.fa, pairs of two lanes, single reads, and some sequences, all small."""
    folder = tmp_path_factory.mktemp("examples")
    reference = gzip.decompress((ROOT / "data/demo.fa.gz").read_bytes())
    (folder / "ref.fa").write_bytes(reference)
    before = os.getcwd()
    os.chdir(folder)
    try:
        runpy.run_path(str(ROOT / "docs/make_pairs.py"))["main"]("ref.fa", 1200)
    finally:
        os.chdir(before)
    for mate in (1, 2):
        shutil.copy(folder / f"L1_{mate}.fq.gz", folder / f"r{mate}.fq.gz")
    reads = gzip.decompress((ROOT / "data/demo.fq.gz").read_bytes()).splitlines(keepends=True)
    (folder / "reads.fq.gz").write_bytes(gzip.compress(b"".join(reads[:2000])))
    contigs = [contig.replace(b"\n", b"") for contig in reference.split(b">chr")]
    (folder / "one.fa").write_bytes(b">one\n" + contigs[1][2001:5001] + b"\n")
    (folder / "other.fa").write_bytes(b">other\n" + contigs[1][1001:9001] + b"\n")
    (folder / "query.fa").write_text(">query\nMKFKPNQTRTYDREGFKKRAACLCFRSEQEDEVLLVSSSRYPDQWIVPGG\n")
    (folder / "proteins.fa").write_text(
        ">one\nMMKLKSNQTRTYDGDGYKKRAACLCFRSESEEEVLLVSSSRHPDRWIVPGGGM\n>two\nMSTNPKPQRKTKRN\n"
    )
    return folder


@pytest.fixture
def example_folder(example_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a copy of `example_files`, with readmap, python and samtools on PATH."""
    tools, folder = tmp_path / "tools", tmp_path / "folder"
    tools.mkdir()
    (tools / "samtools").write_text(SAMTOOLS.format(python=sys.executable))
    (tools / "readmap").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m readmap "$@"\n')
    (tools / "python").symlink_to(sys.executable)
    for name in ("samtools", "readmap"):
        (tools / name).chmod(stat.S_IRWXU)
    shutil.copytree(example_files, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("READMAP_INDEX", raising=False)
    return folder
