"""A scan on a cluster finds what one of the whole database does, however it is divided."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.alignment import reverse_complement

import readmap.dask
from readmap.database.results import ScanHits
from readmap.errors import DatabaseFolderError, UsageError
from readmap.formats.alphabets import Alphabet

DRAW = random.Random(17)
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"


def sequences(letters: str, count: int) -> dict[str, str]:
    """Draw subjects: some share a part, so that their scores tie, and one is empty."""
    common = "".join(DRAW.choices(letters, k=80))
    made = {}
    for number in range(count):
        own = "".join(DRAW.choices(letters, k=DRAW.randrange(10, 300)))
        made[f"s{number}"] = own + (common[: DRAW.randrange(30, 80, 10)] if number % 3 else "")
    return made | {"none": ""}


PROTEINS, BASES = sequences(RESIDUES, 60), sequences("ACGT", 60)


def written(folder: Path, subjects: dict[str, str], molecule: Alphabet) -> Path:
    (folder / "db.fa").write_text("".join(f">{name}\n{letters}\n" for name, letters in subjects.items()))
    readmap.build_database(str(folder / "db.fa"), molecule=molecule).write(folder / "db.readmapdb")
    return folder / "db.readmapdb"


def told(found: Sequence[ScanHits]) -> list[Any]:
    return [
        (
            hits.query,
            *(getattr(hits, name).tolist() for name in ("subjects", "reverse", "scores", "evalues", "bit_scores")),
            hits.alignments.cigars(),
            hits.alignments.target_starts.tolist(),
        )
        for hits in found
    ]


@pytest.mark.parametrize("parts", [None, 1, 5, 1000])
def test_proteins(client: Any, tmp_path: Path, parts: int | None) -> None:
    path = written(tmp_path, PROTEINS, Alphabet.PROTEINS)
    queries = [PROTEINS["s1"], PROTEINS["s4"][-40:], "WWWW"]
    for options in ({}, {"evalue": 1e-3, "max_hits": 7}, {"matrix": "PAM30", "database_letters": 10**9}):
        given: dict[str, Any] = {"device": "cpu", **options}
        found = readmap.dask.scan(client, queries, path, parts=parts, **given)
        assert told(found) == told(readmap.scan(queries, path, **given))
    assert any(len(hits) > 1 for hits in found)


def test_nucleotides(client: Any, tmp_path: Path) -> None:
    path = written(tmp_path, BASES, Alphabet.NUCLEOTIDES)
    queries = {"a": BASES["s2"], "b": reverse_complement(BASES["s5"][-50:])}
    for strand in ("both", "reverse"):
        found = readmap.dask.scan(client, queries, path, strand=strand, max_hits=20, parts=4, device="cpu")
        assert told(found) == told(readmap.scan(queries, path, strand=strand, max_hits=20, device="cpu"))
        assert found[1].reverse.any()


def test_databases_that_are_none(client: Any, tmp_path: Path) -> None:
    path = written(tmp_path, PROTEINS, Alphabet.PROTEINS)
    with pytest.raises(UsageError, match="max hits is 0"):
        readmap.dask.scan(client, "ACD", path, max_hits=0)
    with pytest.raises(DatabaseFolderError):
        readmap.dask.scan(client, "ACD", tmp_path / "db.fa")
    codes = np.load(path / "codes.npy", mmap_mode="r+")
    codes[7] = (codes[7] + 1) % 20
    codes.flush()
    with pytest.raises(DatabaseFolderError, match="was altered"):
        readmap.dask.scan(client, "ACD", path, device="cpu")
