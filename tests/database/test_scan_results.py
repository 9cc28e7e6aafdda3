"""Test properties of hits against alignments written by hand."""

import itertools
import math

import numpy as np
import pytest
from example_hits import (
    DNA_HITS,
    DNA_QUERY,
    NUCLEOTIDES,
    PROTEIN_HITS,
    PROTEINS,
    QUERY,
    Aligned,
    FakeDatabase,
    results,
    reverse_complement,
)

from readmap.database.formats.tab import format_bit_score, format_evalue
from readmap.database.results import ScanHit


@pytest.fixture
def proteins() -> list[ScanHit]:
    return list(results("q1", QUERY, PROTEINS, PROTEIN_HITS))


@pytest.fixture
def nucleotides() -> list[ScanHit]:
    return list(results("n1", DNA_QUERY, NUCLEOTIDES, DNA_HITS))


def test_counts(proteins: list[ScanHit], nucleotides: list[ScanHit]) -> None:
    hits = [*proteins, *nucleotides]
    counts = [(hit.size, hit.equal, hit.different, hit.gaps, hit.gap_openings, hit.positives) for hit in hits]
    # A with S and Q with R score 1, I with L 2; X with X -1, but it is the same letter.
    expected = [(33, 28, 2, 3, 1, 30), (14, 11, 1, 2, 1, 12), (10, 10, 0, 0, 0, 10)]
    assert counts == [*expected, (25, 23, 1, 1, 1, 23), (22, 20, 0, 2, 1, 20)]


def test_positions_refer_to_the_sequences_as_given(nucleotides: list[ScanHit]) -> None:
    for hit, aligned in zip(nucleotides, DNA_HITS, strict=True):
        letters = [*NUCLEOTIDES.sequences.values()][aligned.subject][hit.subject_start : hit.subject_end]
        assert hit.subject.tobytes().decode() == (reverse_complement(letters) if hit.reverse else letters)
        assert DNA_QUERY[hit.query_start : hit.query_end].encode() == hit.query.tobytes()
        assert hit.columns.query.tobytes().decode() == aligned.lines[0]
        assert hit.columns.target.tobytes().decode() == aligned.lines[1]


def test_subjects(proteins: list[ScanHit]) -> None:
    assert [(hit.name, hit.title, hit.length) for hit in proteins] == [
        (b"s1", b"s1 a first title", 34),
        (b"s2", b"s2", 29),
        (b"s2", b"s2", 29),
    ]
    assert [hit.cigar for hit in proteins] == [b"4=1X8=3I8=1X8=", b"6=2D1=1X4=", b"10="]


def test_coverage_by_all_hits_of_a_subject() -> None:
    query = "ACGTTGCAAGTCCATGGATC"
    database = FakeDatabase(dict.fromkeys("abc", query), "nucleotide")
    parts = [(0, 2, 9), (1, 0, 20), (0, 5, 12), (0, 15, 20), (0, 6, 8), (2, 3, 4)]
    hits = [Aligned(subject, (query[start:end],) * 2, (start, end) * 2) for subject, start, end in parts]
    assert [hit.covered for hit in results("q", query, database, hits)] == [15, 20, 15, 15, 15, 1]


def test_no_hits() -> None:
    empty = results("q1", QUERY, PROTEINS, [])
    assert len(empty) == 0
    assert list(empty) == []


# Each number as NCBI BLAST 2.12 writes it in a table and in pairwise text.
EVALUES = [
    *((0.0, "0.0", "0.0"), (9.9e-181, "0.0", "0.0"), (1.04e-180, "1.04e-180", "1e-180")),
    *((1.13e-177, "1.13e-177", "1e-177"), (9.32e-151, "9.32e-151", "9e-151"), (2.05e-83, "2.05e-83", "2e-83")),
    *((3.204e-05, "3.20e-05", "3e-05"), (0.00089, "8.90e-04", "9e-04"), (0.0009, "0.001", "0.001")),
    *((0.0371, "0.037", "0.037"), (0.0999, "0.100", "0.100"), (0.1, "0.10", "0.10"), (0.123, "0.12", "0.12")),
    *((0.999, "1.00", "1.00"), (1.0, "1.0", "1.0"), (1.26, "1.3", "1.3"), (9.96, "10.0", "10.0")),
    *((10.4, "10", "10"), (717905.2, "717905", "717905"), (math.nan, "NA", "NA")),
]  # fmt: skip


@pytest.mark.parametrize(("evalue", "table", "text"), EVALUES)
def test_evalues(evalue: float, table: str, text: str) -> None:
    assert (format_evalue(evalue), format_evalue(evalue, 0)) == (table, text)


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        *((18.54, "18.5"), (99.86, "99.9"), (99.91, "99"), (104.96, "104")),
        *((11408.9, "11408"), (99999.5, "1.000e+05"), (123456.0, "1.235e+05")),
    ],
)
def test_bit_scores(bits: float, text: str) -> None:
    assert format_bit_score(bits) == text
    assert format_bit_score(math.nan) == "NA"


def test_similar_letters_depend_on_the_matrix(proteins: list[ScanHit]) -> None:
    hit = proteins[0]
    pairs = itertools.compress(zip(hit.columns.query, hit.columns.target, strict=True), hit.similar.tolist())
    assert [bytes(pair) for pair in pairs] == [b"AS", b"QR"]
    assert np.count_nonzero(proteins[1].similar) == 1
