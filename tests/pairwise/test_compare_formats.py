"""Test the output formats of comparisons by hand on a few results, and with other programs on many results."""

import json
import random
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest

from readmap.backend import open_backend
from readmap.backend.team import Team
from readmap.errors import DataError
from readmap.formats.sam import query_name
from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.comparison import align_batch, compare_pairs
from readmap.pairwise.formats import ComparisonFormat, writer
from readmap.pairwise.parameters import CompareSettings, Mode
from readmap.pairwise.results import Results
from readmap.reads.sequences import Sequences
from readmap.strand import Strand

BACKEND = open_backend("cpu", threads=2)

#: One with gaps in both sequences and a mismatch, one on the reverse strand, one without an alignment.
QUERIES = ["CCACGTACGTTTGACCATTGACCAGATTACAGATTACCANGTAA", "GGGGGAACCC", ""]
TARGETS = ["TACGTACGTTTGACATTGACCAGGGATTACAGCTTACCANGT", "GGGTTCC", "ACGT"]


def sequences(texts: list[str], prefix: str) -> Sequences:
    letters = np.frombuffer("".join(texts).encode(), np.uint8)
    names = [f"{prefix}{i + 1}".encode() for i in range(len(texts))]
    return Sequences(names, letters, np.cumsum([0, *map(len, texts)]))


def compare(
    queries: list[str], targets: list[str], how: CompareSettings, mode: Mode = Mode.LOCAL, strand: Strand = Strand.BOTH
) -> list[Results]:
    sides = sequences(queries, "q"), sequences(targets, "t")
    return list(compare_pairs(*sides, how, mode, strand, Team.of(BACKEND), lambda done, total: None))


def written(format: ComparisonFormat, found: list[Results], targets: list[str]) -> str:
    maker = writer(format, sequences(targets, "t"), "1.2", "readmap compare a b")
    written: list[bytes] = [maker.start]
    for number, results in enumerate(found):
        maker.write(results, number == 0, written.append)
    return b"".join([*written, maker.end]).decode()


@pytest.fixture(scope="module")
def three() -> list[Results]:
    return compare(QUERIES, TARGETS, CompareSettings())


@pytest.fixture(scope="module")
def three_scores() -> list[Results]:
    return compare(QUERIES, TARGETS, CompareSettings(score_only=True))


def test_summary(three: list[Results], three_scores: list[Results]) -> None:
    assert written(ComparisonFormat.SUMMARY, three, TARGETS) == (
        "query      q1, 44 letters, aligned from 3 to 39\n"
        "target     t1, 42 letters, aligned from 2 to 39\n"
        "strand     forward\n"
        "score      20\n"
        "identity   89.74% of 39 columns: 1 differ\n"
        "gaps       2 of 3 letters: 1 of the query, 2 of the target\n"
        "\n"
        "query      q2, 10 letters, aligned from 4 to 10\n"
        "target     t2, 7 letters, aligned from 1 to 7\n"
        "strand     reverse, the query's reverse complement\n"
        "score      7\n"
        "identity   100.00% of 7 columns: 0 differ\n"
        "gaps       0\n"
        "\n"
        "query      q3, 0 letters\n"
        "target     t3, 4 letters\n"
        "score      0, nothing aligned\n"
        "\n"
    )
    text = written(ComparisonFormat.SUMMARY, three_scores, TARGETS)
    assert text.startswith("query      q1, 44 letters, aligned to 39\n")
    assert "query      q2, 10 letters, aligned from 4 on\n" in text
    assert "identity" not in text


def test_text(three: list[Results]) -> None:
    blocks = written(ComparisonFormat.TEXT, three, TARGETS).split("\n\n")
    assert blocks[1] == (
        "Query    3 ACGTACGTTTGACCATTGACCA--GATTACAGATTACCA 39\n"
        "           |||||||||||| |||||||||  |||||||| ||||||\n"
        "Target   2 ACGTACGTTTGA-CATTGACCAGGGATTACAGCTTACCA 39"
    )
    assert blocks[3] == "Query   10 GGGTTCC 4\n           |||||||\nTarget   1 GGGTTCC 7"
    assert len(blocks) == 6


def test_paf(three: list[Results]) -> None:
    assert written(ComparisonFormat.PAF, three, TARGETS) == (
        "q1\t44\t2\t39\t+\tt1\t42\t1\t39\t35\t39\t255\tNM:i:4\tAS:i:20\tcg:Z:12=1I9=2D8=1X6=\n"
        "q2\t10\t3\t10\t-\tt2\t7\t0\t7\t7\t7\t255\tNM:i:0\tAS:i:7\tcg:Z:7=\n"
    )


def test_tsv(three: list[Results], three_scores: list[Results]) -> None:
    header = (
        "query\tquery_length\tquery_start\tquery_end\tstrand\ttarget\ttarget_length\ttarget_start\ttarget_end\t"
        "score\tidentity\tcolumns\tgap_openings\tgap_letters\tcigar\n"
    )
    assert written(ComparisonFormat.TSV, three, TARGETS) == header + (
        "q1\t44\t3\t39\t+\tt1\t42\t2\t39\t20\t0.897436\t39\t2\t3\t12=1I9=2D8=1X6=\n"
        "q2\t10\t4\t10\t-\tt2\t7\t1\t7\t7\t1.0\t7\t0\t0\t7=\n"
        "q3\t0\t*\t*\t*\tt3\t4\t*\t*\t0\t*\t*\t*\t*\t*\n"
    )
    assert written(ComparisonFormat.TSV, three_scores, TARGETS) == header + (
        "q1\t44\t*\t39\t+\tt1\t42\t*\t39\t20\t*\t*\t*\t*\t*\n"
        "q2\t10\t4\t*\t-\tt2\t7\t*\t7\t7\t*\t*\t*\t*\t*\n"
        "q3\t0\t*\t*\t*\tt3\t4\t*\t*\t0\t*\t*\t*\t*\t*\n"
    )


def test_json(three: list[Results], three_scores: list[Results]) -> None:
    for found in (three, three_scores, []):
        objects = json.loads(written(ComparisonFormat.JSON, found, TARGETS))
        header, *lines = written(ComparisonFormat.TSV, found, TARGETS).splitlines()
        names = header.split("\t")
        rows = [{n: "*" if v is None else str(v) for n, v in each.items()} for each in objects]
        assert rows == [dict(zip(names, line.split("\t"), strict=True)) for line in lines]
    first = json.loads(written(ComparisonFormat.JSON, three, TARGETS))[0]
    assert (first["score"], first["identity"], first["cigar"]) == (20, 0.897436, "12=1I9=2D8=1X6=")


def random_pairs(count: int) -> tuple[list[str], list[str]]:
    generator = random.Random(5)
    queries = ["".join(generator.choices("ACGTN", [9, 9, 9, 9, 1], k=generator.randrange(40))) for _ in range(count)]
    targets = []
    for query in queries:
        cut = generator.randrange(len(query) + 1)
        text = query[:cut] + "".join(generator.choices("ACGT", k=generator.randrange(4))) + query[cut + 2 :]
        if generator.random() < 0.5:
            text = text[::-1].translate(str.maketrans("ACGT", "TGCA"))
        targets.append(text)
    return queries, targets


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("strand", list(Strand))
def test_pysam_reads_the_sam_output(tmp_path: Path, mode: Mode, strand: Strand) -> None:
    queries, targets = random_pairs(80)
    found = compare(queries, targets, CompareSettings(), mode, strand)
    (tmp_path / "x.sam").write_text(written(ComparisonFormat.SAM, found, targets))
    results = [result for each in found for result in each]
    with pysam.AlignmentFile(str(tmp_path / "x.sam")) as sam:
        assert sam.header.to_dict()["PG"][0]["CL"] == "readmap compare a b"  # type: ignore[index]
        assert dict(zip(sam.references, sam.lengths, strict=True)) == {
            f"t{i + 1}": len(text) for i, text in enumerate(targets) if text
        }
        records: Any = list(sam)
    assert [record.query_name for record in records] == [result.query_name.decode() for result in results]
    mapped = 0
    for record, result, target in zip(records, results, targets, strict=True):
        assert record.is_reverse == result.reverse
        assert (record.query_sequence or "").encode() == result.query.tobytes()
        assert record.get_tag("AS") == result.score
        if record.is_unmapped:
            assert result.is_empty or not result.query.size or result.target_start == result.target_end
            continue
        mapped += 1
        assert (record.reference_start, record.reference_end) == (result.target_start, result.target_end)
        assert record.get_tag("NM") == result.different + result.gaps
        pairs = record.get_aligned_pairs(matches_only=True)
        equal = sum(record.query_sequence[i] == target[j] != "N" for i, j in pairs)
        assert (equal, len(pairs)) == (result.equal, result.equal + result.different)
    assert mapped > 50


def test_invalid_sam_names_are_rejected() -> None:
    targets = Sequences([b"a", b"b", b"a"], np.frombuffer(b"ACG", np.uint8), np.arange(4))
    with pytest.raises(DataError, match=r"record 3 of the targets \(a\): record 1 has the same name"):
        writer(ComparisonFormat.SAM, targets, "1", "")
    for name in (b"*", b"a\x00", b"(a)"):
        targets = Sequences([b"a", name], np.frombuffer(b"AC", np.uint8), np.arange(3))
        with pytest.raises(
            DataError, match=r"record 2 of the targets .* its name is not valid in a SAM header: choose"
        ):
            writer(ComparisonFormat.SAM, targets, "1", "")
    assert query_name(b"(" * 255) == b"(" * 254
    for name in (b"a\x00", b"a@b", b"\xff"):
        expected = r"query .*: names in SAM have characters from '!' to '~' except '@': choose another"
        with pytest.raises(DataError, match=expected):
            query_name(name)


@pytest.mark.parametrize("strand", [Strand.FORWARD, Strand.REVERSE])
def test_blocks_of_a_long_alignment(strand: Strand) -> None:
    generator = random.Random(6)
    query = "".join(generator.choices("ACGT", k=200))
    target = query[:50] + query[140:]  # the gap is longer than a line
    if strand is Strand.REVERSE:
        target = target[::-1].translate(str.maketrans("ACGT", "TGCA"))
    found = compare([query], [target], CompareSettings(), Mode.GLOBAL, strand)
    lines = written(ComparisonFormat.TEXT, found, [target]).split("\n\n", 1)[1].splitlines()
    rows: dict[str, list[tuple[int, str, int]]] = {"Query": [], "Target": []}
    for line in lines:
        if found_line := re.fullmatch(r"(Query|Target) +(\d+) ([A-Z-]+) (\d+)", line):
            rows[found_line[1]].append((int(found_line[2]), found_line[3], int(found_line[4])))
    step = -1 if strand is Strand.REVERSE else 1
    for name, text in (("Query", query), ("Target", target)):
        at = len(text) if name == "Query" and step < 0 else 1
        way = step if name == "Query" else 1
        for first, letters, last in rows[name]:
            count = len(letters.replace("-", ""))
            assert (first, last) == ((at, at + way * (count - 1)) if count else (at - way, at - way))
            at += way * count
        assert sum(len(letters.replace("-", "")) for _, letters, _ in rows[name]) == len(text)
    assert {len(letters) for _, letters, _ in rows["Query"][:-1]} == {60}
    assert any(set(letters) == {"-"} for _, letters, _ in rows["Target"])


def many(pairs: int) -> Results:
    """Return pairs of 150 letters with three operations each."""
    letters = np.random.default_rng(1).choice(np.frombuffer(b"ACGT", np.uint8), 150 * pairs)
    names = [b"pair%d" % i for i in range(pairs)]
    side = Sequences(names, letters, np.arange(pairs + 1) * 150)
    zero, end = np.zeros(pairs, np.int64), np.full(pairs, 150)
    operations = np.tile(np.array([70 << 4 | 7, 10 << 4 | 8, 70 << 4 | 7], np.uint32), pairs)
    found = PairAlignments(zero.astype(np.int32), zero, end, zero, end, np.arange(1, pairs + 1) * 3, operations)
    return Results(side, side, zero.astype(np.bool_), found, False, 0, 0)


@pytest.mark.parametrize("format", list(ComparisonFormat))
def test_formatting_takes_microseconds_per_pair(format: ComparisonFormat) -> None:
    results = many(20_000)
    maker = writer(format, results.targets.part(0, 1), "1", "")
    began = time.process_time()
    maker.write(results, True, lambda written: None)
    # About fifteen times the usual time.
    assert time.process_time() - began < 20_000 * 200e-6


def test_names_that_are_not_utf8() -> None:
    side = Sequences([b"\xff\xc3\xa9"], np.frombuffer(b"ACGT", np.uint8), np.array([0, 4]))
    found = align_batch(side, side, CompareSettings().scores, Mode.LOCAL, BACKEND, False)
    results = Results(side, side, np.zeros(1, np.bool_), found, False, 0, 0)
    for format in {*ComparisonFormat} - {ComparisonFormat.SAM}:  # SAM does not allow such names
        maker = writer(format, side, "1", "")
        written: list[bytes] = []
        maker.write(results, True, written.append)
        assert written[0].startswith(b"\xff\xc3\xa9\t4") == (format is ComparisonFormat.PAF)
