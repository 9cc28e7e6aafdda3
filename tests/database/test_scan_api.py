"""Test readmap.scan."""

import random
from pathlib import Path

import numpy as np
import pytest

import readmap
from readmap.errors import DataError, UsageError

RANDOM = random.Random(7)
PROTEINS = {f"p{i}": "".join(RANDOM.choices("ACDEFGHIKLMNPQRSTVWY", k=50 + 10 * i)) for i in range(8)}


def test_result(backends: str) -> None:
    (hits,) = readmap.scan(PROTEINS["p3"][10:60], PROTEINS, evalue=1e-10, device=backends)
    assert hits.query == 0
    assert hits.subjects.tolist() == [3]
    found = hits.alignments
    assert (found.query_starts.tolist(), found.target_starts.tolist(), found.cigars()) == ([0], [10], ["50="])
    assert hits.scores.dtype == np.int32
    assert hits.evalues[0] < 1e-20
    assert hits.bit_scores[0] > 50
    assert not hits.reverse.any()


def test_types_of_sequences_and_databases(tmp_path: Path) -> None:
    path = tmp_path / "p.fa"
    path.write_text("".join(f">{name}\n{letters}\n" for name, letters in PROTEINS.items()))
    database = readmap.build_database(str(path))
    database.write(tmp_path / "p.readmapdb")
    opened = readmap.Database.open(tmp_path / "p.readmapdb")
    assert list(opened.names) == [name.encode() for name in PROTEINS]
    queries = list(PROTEINS.values())[:3]
    expected = [hits.scores.tolist() for hits in readmap.scan(queries, database, device="cpu")]
    for given in (path, str(path), tmp_path / "p.readmapdb", opened, PROTEINS, list(PROTEINS.values())):
        assert [hits.scores.tolist() for hits in readmap.scan(queries, given, device="cpu")] == expected
    named = {name.lower(): letters.lower().encode() for name, letters in list(PROTEINS.items())[:3]}
    assert [hits.scores.tolist() for hits in readmap.scan(named, opened, device="cpu", threads=3)] == expected


def test_nucleotides() -> None:
    gene = "ACGGTCATTGCAACGTAGGCTTAC"
    reverse = gene.translate(str.maketrans("ACGT", "TGCA"))[::-1]
    (hits,) = readmap.scan(gene, {"a": "TTTT" + gene, "b": reverse + "GG"}, match=2, evalue=1e-3, device="cpu")
    assert hits.subjects.tolist() == [0, 1]
    assert hits.reverse.tolist() == [False, True]
    assert hits.scores.tolist() == [48, 48]
    (hits,) = readmap.scan(gene, [gene], match=1, strand="reverse", min_score=20, device="cpu")
    assert len(hits) == 0


def test_empty_input() -> None:
    assert readmap.scan([], PROTEINS, device="cpu") == []
    assert [len(hits) for hits in readmap.scan(["", "A"], PROTEINS, device="cpu", evalue=1e-3)] == [0, 0]
    assert [len(hits) for hits in readmap.scan("ACDEF", [], device="cpu")] == [0]
    assert [len(hits) for hits in readmap.scan("ACDEF", [""], device="cpu")] == [0]


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(DataError, match=r"query1, position 3: expected an amino acid .*, found b'1'"):
        readmap.scan("AC1", PROTEINS, device="cpu")
    with pytest.raises(DataError, match="x, position 2: expected a nucleotide"):
        readmap.scan("ACGT", {"x": "AEC"}, match=2, device="cpu")
    with pytest.raises(UsageError, match="strand is 'up', expected both, forward, reverse"):
        readmap.scan("ACGT", ["ACGT"], match=2, strand="up", device="cpu")
    with pytest.raises(UsageError, match="gap extend is 0, expected 1 to 1000"):
        readmap.scan("ACD", PROTEINS, gap_extend=0, device="cpu")
