"""Pairs and segments from Python: what the SAM of a search holds, as arrays, as hits, and as pysam's segments."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from examples import Read, below, fastq, index_of, random_bases, random_quality, small_genome, substitute
from oracles.alignment import reverse_complement

from readmap import Aligner, DataError, InsertSize, Pairing, Pairs, Reporting, UsageError
from readmap.cli import main

DRAW = random.Random(83)
GENOME = small_genome(DRAW)
INDEX = index_of(GENOME)
LENGTH, INSERT, DEVIATION = 90, 250, 15


def _pairs(count: int) -> list[tuple[str, str]]:
    """Most of them fragments of the genome; some mates from elsewhere, split, empty or random."""
    pairs = []
    for number in range(count):
        letters = GENOME[("one", "two")[below(DRAW, 2)]]
        size = INSERT + below(DRAW, 2 * DEVIATION + 1) - DEVIATION
        start = below(DRAW, len(letters) - size)
        fragment = letters[start : start + size]
        first, second = fragment[:LENGTH], reverse_complement(fragment)[:LENGTH]
        if number % 9 == 0:
            first = random_bases(DRAW, below(DRAW, 120))
        if number % 15 == 0:
            second = GENOME["two"][20:60] + second[:50]
        pair = substitute(DRAW, first, below(DRAW, 3)), second
        pairs.append(pair if below(DRAW, 2) else pair[::-1])
    return pairs


FIRST, SECOND = map(list, zip(*_pairs(240), strict=True))
QUALITIES = [[random_quality(DRAW, len(bases)) for bases in mates] for mates in (FIRST, SECOND)]
NAMES = [f"pair{number}" for number in range(len(FIRST))]


@pytest.fixture(scope="module")
def aligner(backends: str) -> Aligner:
    return Aligner(INDEX, device=backends, threads=2)


@pytest.fixture(scope="module")
def pairs(aligner: Aligner) -> Pairs:
    return aligner.map_pairs(FIRST, SECOND, *QUALITIES)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the reads as files, and the index."""
    folder = tmp_path_factory.mktemp("segments")
    INDEX.write(folder / "index")
    for name, bases, qualities in (("r1.fq", FIRST, QUALITIES[0]), ("r2.fq", SECOND, QUALITIES[1])):
        reads = [Read(*fields) for fields in zip(NAMES, bases, qualities, strict=True)]
        (folder / name).write_bytes(fastq(reads))
    return folder


def records(world: Path, *arguments: str) -> list[str]:
    """What the command writes, but for its header."""
    reads = [str(world / name) if name.endswith(".fq") else name for name in arguments]
    out = world / "out.sam"
    assert main(["search", *reads, "-x", str(world / "index"), "-o", str(out), "-q", "--device", "cpu"]) == 0
    return [line for line in out.read_text().splitlines() if not line.startswith("@")]


def primary(segments: list[pysam.AlignedSegment]) -> list[Any]:
    return [segment for segment in segments if not segment.is_secondary and not segment.is_supplementary]


def test_segments_are_the_records_of_a_search(aligner: Aligner, world: Path) -> None:
    segments = aligner.pair_segments(FIRST, SECOND, *QUALITIES, names=NAMES)
    assert [segment.to_string() for segment in segments] == records(world, "r1.fq", "r2.fq")
    assert any(segment.is_supplementary for segment in segments)
    segments = aligner.segments(FIRST, QUALITIES[0], NAMES)
    assert [segment.to_string() for segment in segments] == records(world, "r1.fq")
    assert len(primary(segments)) == len(FIRST)


def test_segments_are_as_the_options_have_them(backends: str, world: Path) -> None:
    settings = Pairing(joint=False), Reporting(max_secondary=2, soft_clipped=True, leftmost_primary=True)
    aligner = Aligner(INDEX, device=backends, pairing=settings[0], reporting=settings[1])
    segments = aligner.pair_segments(FIRST, SECOND, *QUALITIES, insert_size=(250, 20), names=NAMES)
    options = ("-P", "--max-secondary", "2", "-Y", "-5", "-I", "250,20")
    assert [segment.to_string() for segment in segments] == records(world, "r1.fq", "r2.fq", *options)
    assert any(segment.is_secondary for segment in segments)


def test_segments_make_a_file(aligner: Aligner, tmp_path: Path) -> None:
    segments = aligner.pair_segments(FIRST, SECOND)
    with pysam.AlignmentFile(str(tmp_path / "out.bam"), "wb", header=aligner.header) as file:
        for segment in segments:
            file.write(segment)
    with pysam.AlignmentFile(str(tmp_path / "out.bam")) as file:
        assert file.references == tuple(GENOME)
        (program,) = file.header.to_dict()["PG"]
        assert program["PN"] == "readmap"
        assert [segment.to_string() for segment in file] == [segment.to_string() for segment in segments]
    assert {segment.get_tag("PG") for segment in segments} == {program["ID"]}
    assert {segment.query_name for segment in segments} == {"*"}
    assert {segment.query_qualities for segment in segments} == {None}


def test_pairs_are_the_primary_records(aligner: Aligner, pairs: Pairs) -> None:
    both = primary(aligner.pair_segments(FIRST, SECOND, *QUALITIES))
    assert len(pairs) == len(FIRST) == len(both) / 2
    for mates, hits in ((both[::2], pairs.first), (both[1::2], pairs.second)):
        for number, segment in enumerate(mates):
            hit = hits.hit(number)
            assert (hit is None) == segment.is_unmapped
            if hit is None:
                continue
            place = segment.reference_name, segment.reference_start, segment.reference_end
            assert (hit.query, hit.contig, hit.ref_start, hit.ref_end) == (number, *place)
            rest = (segment.is_reverse, segment.mapping_quality, segment.cigarstring, segment.get_tag("AS"))
            assert (hit.strand == -1, hit.mapq, hit.cigar, hit.score) == rest
    assert pairs.proper.tolist() == [segment.is_proper_pair for segment in both[::2]]
    assert pairs.template_lengths.tolist() == [segment.template_length for segment in both[::2]]
    assert 0 < pairs.proper.sum() < len(pairs)


def test_iterating_gives_both_mates(pairs: Pairs) -> None:
    found = list(pairs)
    assert found == [(pairs.first.hit(number), pairs.second.hit(number)) for number in range(len(pairs))]
    assert any(first is None and second is not None for first, second in found)
    assert any(first is not None and second is None for first, second in found)


def test_insert_sizes(aligner: Aligner, pairs: Pairs) -> None:
    (size,) = pairs.insert_sizes
    assert size.direction == "FR"
    assert abs(size.mean - INSERT) < 4
    few = aligner.map_pairs(FIRST[:5], SECOND[:5])
    assert (few.insert_sizes, few.proper.tolist()) == ((), [False] * 5)
    expected = (InsertSize("FR", 250, 20, 170, 330),)
    given = aligner.map_pairs(FIRST[:5], SECOND[:5], insert_size=(250, 20))
    assert given.insert_sizes == expected
    assert given.proper.any()
    settled = Aligner(INDEX, device=aligner.backend.name, pairing=Pairing(insert_size=(250, 20)))
    assert settled.map_pairs(FIRST[:5], SECOND[:5]).insert_sizes == expected
    with pytest.raises(UsageError, match="insert size 0,3: expected a mean"):
        aligner.map_pairs(FIRST, SECOND, insert_size=(0, 3))


@pytest.mark.parametrize("qualities", [None, []])
def test_nothing_to_map(aligner: Aligner, qualities: list[str] | None) -> None:
    pairs = aligner.map_pairs([], [], qualities, qualities)
    assert (len(pairs), list(pairs), pairs.insert_sizes) == (0, [], ())
    assert (pairs.proper.dtype, pairs.template_lengths.dtype) == (np.bool_, np.int64)
    assert aligner.segments([], qualities) == aligner.pair_segments([], [], qualities, qualities) == []


def test_names_are_those_of_a_file(aligner: Aligner) -> None:
    """Up to the first blank, without /1 and /2, and nothing of them ends a record."""
    names = ["plain", "with comment", "x/1", b"bytes", "", "line\nbreak", "tab\tXX:i:1"]
    expected = ["plain", "with", "x", "bytes", "*", "line", "tab"]
    segments = aligner.segments(["ACGT"] * len(names), names=names)
    assert [segment.query_name for segment in segments] == expected
    segments = aligner.pair_segments(["ACGT"] * 2, ["ACGT"] * 2, names=iter(["a", "b"]))
    assert [segment.query_name for segment in segments] == ["a", "a", "b", "b"]
    for name in ("@at", "long" * 100):
        with pytest.raises(DataError, match="sequences, record 2: expected a name of 1 to 254 characters"):
            aligner.segments(["ACGT"] * 2, names=["good", name])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["A"], ["C", "G"]), "expected equal numbers of second mates and first mates, found 2 and 1"),
        ((["A"], ["C"], ["I"]), "expected qualities of both mates or of neither"),
        ((["A"], ["C"], None, ["I"]), "expected qualities of both mates or of neither"),
        (
            (["A", "C"], ["C", "G"], ["I", "I"], ["I"]),
            "expected equal numbers of qualities and sequences, found 1 and 2",
        ),
        ((["A", "C"], ["C", "AC-T"]), "second, record 2 .*: expected a nucleotide at base 3, found '-'"),
        ((["A", "C!"], ["C", "A"]), "first, record 2 .*: expected a nucleotide at base 2, found '!'"),
        ((["A"], ["C"], ["I"], ["II"]), "second, record 1 .*: quality has 2 characters, sequence has 1"),
    ],
)
def test_bad_pairs(aligner: Aligner, arguments: tuple[Any, ...], message: str) -> None:
    for work in (aligner.map_pairs, aligner.pair_segments):
        with pytest.raises(DataError, match=message):
            work(*arguments)


def test_missing_names(aligner: Aligner) -> None:
    for names in ([], ["a", "b"]):
        with pytest.raises(DataError, match=f"expected equal numbers of names and sequences, found {len(names)} and 1"):
            aligner.segments(["ACGT"], names=names)
        with pytest.raises(DataError, match="expected equal numbers of names"):
            aligner.pair_segments(["ACGT"], ["ACGT"], names=names)
