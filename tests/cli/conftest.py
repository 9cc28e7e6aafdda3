"""Fixtures of the tests of commands: an empty folder and some reads."""

import gzip
from pathlib import Path

import pytest

READS = Path(__file__).resolve().parents[2] / "data/demo.fq.gz"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in an empty folder, without READMAP_INDEX."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("READMAP_INDEX", raising=False)


@pytest.fixture(scope="session")
def few_reads(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("reads") / "few.fq"
    path.write_bytes(b"".join(gzip.decompress(READS.read_bytes()).splitlines(keepends=True)[:400]))
    return str(path)
