"""The Python API: hits and arrays that agree with each other, with the oracle and with the SAM of a search."""

import dataclasses
import doctest
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import below, draw_reads, fastq, index_of, random_bases, small_genome, substitute
from oracles.alignment import reverse_complement
from search_runs import map_files

import readmap
from readmap import Aligner, DataError, Hit, Hits, Scoring
from readmap.errors import BackendError, UsageError

ROOT = Path(__file__).resolve().parents[2]
DRAW = random.Random(71)
GENOME = small_genome(DRAW)
READS = draw_reads(DRAW, GENOME, 150)
INDEX = index_of(GENOME)


@pytest.fixture(scope="module")
def aligner(backends: str) -> Aligner:
    return Aligner(INDEX, device=backends, threads=2)


def test_example_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = doctest.testmod(readmap, raise_on_error=False)
    assert done.attempted > 2
    assert done.failed == 0


def test_public_names() -> None:
    for name in readmap.__all__:
        assert getattr(readmap, name) is not None
    assert {"Aligner", "Hit", "Hits", "Index", "Scoring", "build_index", "ReadmapError"} <= set(readmap.__all__)


def test_arrays_and_hits_are_the_same(aligner: Aligner) -> None:
    hits = aligner.map([read.bases for read in READS])
    assert len(hits) == len(READS)
    names = list(GENOME)
    mapped = [i for i in range(len(hits)) if hits.contigs[i] >= 0]
    assert [hit.query for hit in hits] == mapped
    assert 0 < len(mapped) < len(READS)
    for hit in hits:
        i = hit.query
        row = (hits.ref_starts[i], hits.ref_ends[i], hits.strands[i], hits.mapqs[i], hits.cigar(i), hits.scores[i])
        expected = Hit(i, names[hits.contigs[i]], *row, hits.edit_distances[i])
        assert hit == expected
        assert {type(value) for value in dataclasses.astuple(hit)} == {int, str}
    for i in set(range(len(hits))) - set(mapped):
        arrays = (hits.contigs, hits.ref_starts, hits.ref_ends, hits.mapqs, hits.scores, hits.suboptimal_scores)
        assert [int(array[i]) for array in arrays] == [-1, 0, 0, 0, 0, 0]
        assert (hits.edit_distances[i], hits.cigar_lengths[i], hits.cigar(i)) == (0, 0, "*")


def dtypes(hits: Hits) -> dict[str, Any]:
    others = {"names", "first", "read_names"}
    fields = [field.name for field in dataclasses.fields(hits) if field.name not in others]
    return {name: getattr(hits, name).dtype for name in fields}


def test_types(aligner: Aligner) -> None:
    hits = aligner.map([READS[0].bases, ""])
    assert dtypes(hits) == {
        "contigs": np.int32,
        "ref_starts": np.int64,
        "ref_ends": np.int64,
        "strands": np.int8,
        "mapqs": np.uint8,
        "scores": np.int32,
        "suboptimal_scores": np.int32,
        "edit_distances": np.int32,
        "cigar_offsets": np.int64,
        "cigar_lengths": np.int32,
        "cigar_operations": np.uint32,
    }
    assert all(isinstance(getattr(hits, name), np.ndarray) for name in dtypes(hits))
    assert [contig.name for contig in hits.names] == list(GENOME)


@pytest.mark.parametrize("qualities", [None, []])
def test_nothing_to_map(aligner: Aligner, qualities: list[str] | None) -> None:
    hits = aligner.map([], qualities)
    assert len(hits) == 0
    assert list(hits) == []
    assert dtypes(hits) == dtypes(aligner.map(["ACGT"]))


def test_sequences_without_a_place(aligner: Aligner) -> None:
    sequences = ["", "A", "ACGT", "N" * 100, random_bases(random.Random(72), 150), "ACGT" * 2_500]
    hits = aligner.map(sequences)
    assert hits.contigs.tolist() == [-1] * len(sequences)
    assert list(hits) == []


def test_one_sequence(aligner: Aligner) -> None:
    """Text, bytes, lower case, and the reverse complement."""
    letters = GENOME["one"][40:140]
    expected = Hit(0, "one", 40, 140, 1, 60, "100M", 100, 0)
    for sequence in (letters, letters.encode(), letters.lower(), bytearray(letters.encode())):
        (hit,) = aligner.map([sequence])  # type: ignore[list-item]
        assert dataclasses.replace(hit, mapq=60) == expected
        assert hit.mapq >= 30
    (hit,) = aligner.map(iter([reverse_complement(letters)]))
    assert dataclasses.replace(hit, mapq=60) == dataclasses.replace(expected, strand=-1)


def test_the_same_as_a_search(aligner: Aligner, tmp_path: Path) -> None:
    (tmp_path / "reads.fq").write_bytes(fastq(READS))
    map_files([tmp_path / "reads.fq"], aligner.index, aligner.backend, tmp_path / "out.sam")
    rows = [line.split("\t") for line in (tmp_path / "out.sam").read_text().splitlines()]
    hits = aligner.map([read.bases for read in READS], [read.quality or "" for read in READS])
    found = {hit.query: hit for hit in hits}
    for number, row in enumerate(rows):
        hit = found.get(number)
        if row[1] == "4":
            assert hit is None
            continue
        assert hit is not None
        place = ("16" if hit.strand == -1 else "0", hit.contig, str(hit.ref_start + 1), str(hit.mapq), hit.cigar)
        assert tuple(row[1:6]) == place
        tags = (f"NM:i:{hit.edit_distance}", f"AS:i:{hit.score}", f"XS:i:{hits.suboptimal_scores[number]}")
        assert (row[11], row[13], row[14]) == tags


def test_threads_and_devices(backends: str) -> None:
    bases = [read.bases for read in READS]
    expected = list(Aligner(INDEX, device="cpu", threads=1).map(bases))
    for threads in (None, 4):
        assert list(Aligner(INDEX, device=backends, threads=threads).map(bases)) == expected
    with pytest.raises(UsageError, match="--device abacus"):
        Aligner(INDEX, device="abacus")


def test_device_that_is_not_there() -> None:
    if readmap.backend.cuda_available() is None:
        pytest.skip("there is a GPU")
    with pytest.raises(BackendError, match="device cuda cannot be used"):
        Aligner(INDEX, device="cuda")


@pytest.mark.parametrize(
    ("sequences", "qualities", "message"),
    [
        (["ACGT", "AC-T"], None, r"sequences, record 2 .*: expected a nucleotide at base 3, found '-'"),
        (["ACGT", "A", "A\nC"], None, r"record 3 .*: expected a nucleotide at base 2"),
        *(([f"ACGT{end}"], None, r"record 1 .*: expected a nucleotide at base 5") for end in "\n\r\t \0"),
        (["A" * 10_001], None, r"record 1 .*: the read has 10001 bases; at most 10000 are supported"),
        (["ACGT", "ACGT"], ["IIII", "III"], r"record 2 .*: quality has 3 characters, sequence has 4"),
        (["ACGT"], ["II\nI"], r"record 1"),
        (["ACGT"], [], r"qualit"),
        ([], ["IIII"], r"qualit"),
    ],
)
def test_bad_sequences(aligner: Aligner, sequences: list[str], qualities: list[str] | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        aligner.map(sequences, qualities)


def test_scoring(backends: str) -> None:
    letters = GENOME["one"]
    read = letters[100:150] + letters[152:200]
    strict = Aligner(INDEX, device=backends, scoring=Scoring(match=2, mismatch=8, gap_open=3, gap_extend=2))
    (hit,) = strict.map([read])
    assert (hit.score, hit.edit_distance) == (2 * 98 - 3 - 2 * 2, 2)
    picky = Aligner(INDEX, device=backends, scoring=Scoring(min_score=92))
    assert list(picky.map([read])) == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *(("match", 0, "1 to 1000"), ("match", 1001, "1 to 1000"), ("mismatch", -1, "0 to 1000")),
        *(("gap_open", -1, "0 to 1000"), ("gap_extend", 0, "1 to 1000"), ("clip_penalty", -1, "0 to 1000")),
        *(("gap_open", (6, -1), "0 to 1000, or two of them"), ("gap_open", (1, 2, 3), "0 to 1000, or two of them")),
        *(
            ("clip_penalty", (), "0 to 1000, or two of them"),
            ("match", (1, 2), "1 to 1000"),
            ("mismatch", 1.5, "0 to 1000"),
        ),
        *(("min_score", -1, "0 to"), ("min_score", -(2**40), "0 to")),
    ],
)
def test_scoring_out_of_range(name: str, value: int, expected: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"{name.replace('_', ' ')} is {value}, expected {expected}")):
        Scoring(**{name: value})


def test_many_lengths(aligner: Aligner) -> None:
    """Each read of a unique stretch is found whole, from the shortest that can reach the minimum score."""
    generator = random.Random(74)
    contig = random_bases(generator, 20_000)
    lengths = [30, 31, 32, 33, 50, 63, 64, 65, 100, 150, 151, 250, 511, 512, 513, 1_000, 3_333, 10_000]
    starts = [below(generator, 20_000 - length) for length in lengths]
    reads = [contig[start : start + length] for start, length in zip(starts, lengths, strict=True)]
    long = Aligner(index_of([contig]), device=aligner.backend.name)
    hits = list(long.map(reads))
    assert [(hit.ref_start, hit.cigar) for hit in hits] == [
        (start, f"{length}M") for start, length in zip(starts, lengths, strict=True)
    ]
    spoilt = [substitute(generator, read, len(read) // 50) for read in reads]
    assert [hit.ref_start for hit in long.map(spoilt) if len(reads[hit.query]) >= 100] == starts[8:]
