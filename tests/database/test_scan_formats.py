"""Test the output formats of scans by hand on a few hits, against BLAST's output, and with pysam."""

import io
import json
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pysam
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

from readmap.database.formats import ENDINGS, ScanFormat, writer
from readmap.database.formats.tab import COLUMNS, STANDARD, parse_columns
from readmap.database.results import QueryHits
from readmap.errors import DataError, UsageError
from readmap.formats.output import format_by_ending


def written(format: ScanFormat, found: list[QueryHits], columns: tuple[str, ...] = STANDARD) -> str:
    maker = writer(format, found[0].subjects, "1.2", "readmap scan a b", columns)
    written = [maker.start]
    for number, each in enumerate(found):
        maker.write(each, number == 0, written.append)
    return b"".join([*written, maker.end]).decode()


@pytest.fixture
def proteins() -> list[QueryHits]:
    return [results("q1 the query", QUERY, PROTEINS, PROTEIN_HITS), results("q2 none", "MKV", PROTEINS, [])]


@pytest.fixture
def nucleotides() -> list[QueryHits]:
    return [results("n1", DNA_QUERY, NUCLEOTIDES, DNA_HITS), results("n2", "ACGT", NUCLEOTIDES, [])]


def test_table(proteins: list[QueryHits], nucleotides: list[QueryHits]) -> None:
    assert written(ScanFormat.TAB, proteins) == (
        "q1\ts1\t84.848\t33\t2\t1\t1\t33\t3\t32\t3.21e-15\t104\n"
        "q1\ts2\t78.571\t14\t1\t1\t31\t42\t3\t16\t0.037\t26.6\n"
        "q1\ts2\t100.000\t10\t0\t0\t1\t10\t19\t28\t1.3\t21.9\n"
    )
    assert written(ScanFormat.TAB, nucleotides) == (
        "n1\tc1\t92.000\t25\t1\t1\t4\t28\t10\t33\t2.00e-07\t28.2\nn1\tc2\t90.909\t22\t0\t1\t5\t24\t24\t3\tNA\tNA\n"
    )


def test_chosen_columns(proteins: list[QueryHits], nucleotides: list[QueryHits]) -> None:
    columns = parse_columns("stitle,cigar btop, sstrand qcovs")
    assert columns == ("stitle", "cigar", "btop", "sstrand", "qcovs")
    assert written(ScanFormat.TAB, proteins, columns).splitlines()[0] == (
        "s1 a first title\t4=1X8=3I8=1X8=\t4AS8W-E-R-8QR8\tN/A\t67"
    )
    assert written(ScanFormat.TAB, nucleotides, columns).splitlines()[1] == "c2\t12=2D8=\t12-G-G8\tminus\t63"
    assert parse_columns("score std") == ("score", *STANDARD)


@pytest.mark.parametrize("option", ["qseqid,pidend", "", " , "])
def test_unknown_columns(option: str) -> None:
    with pytest.raises(UsageError, match=r"^--columns .*known columns are qseqid, qacc, .*, cigar, std$"):
        parse_columns(option)


def test_percentages_are_rounded_as_in_blast() -> None:
    lines = "A" * 160, "A" * 49 + "C" * 111
    found = results("q", lines[0], FakeDatabase({"s": lines[1]}), [Aligned(0, lines, (0, 160, 0, 160))])
    assert written(ScanFormat.TAB, [found], ("pident", "ppos")) == "30.625\t30.63\n"
    lines = "A" * 64, "A" * 13 + "C" * 51
    found = results("q", lines[0], FakeDatabase({"s": lines[1]}), [Aligned(0, lines, (0, 64, 0, 64))])
    assert written(ScanFormat.TAB, [found], ("pident", "ppos")) == "20.312\t20.31\n"


def test_a_title_with_a_tab() -> None:
    database = FakeDatabase({"a b\tc": "MKV"})
    found = results("q", "MKV", database, [Aligned(0, ("MKV", "MKV"), (0, 3, 0, 3))])
    assert written(ScanFormat.TAB, [found], ("stitle", "length")) == "a b c\t3\n"


def test_text(proteins: list[QueryHits]) -> None:
    text = written(ScanFormat.TEXT, proteins)
    assert text.startswith(
        "Query= q1 the query\n"
        "\n"
        "Length=49\n"
        "                                                                      Score     E\n"
        "Sequences producing significant alignments:                          (Bits)  Value\n"
        "\n"
        "s1 a first title                                                      104     3e-15\n"
        "s2                                                                    26.6    0.037\n"
        "s2                                                                    21.9    1.3\n"
        "\n"
        "\n"
        ">s1 a first title\n"
        "Length=34\n"
        "\n"
        " Score = 104 bits (123),  Expect = 3e-15\n"
        " Identities = 28/33 (85%), Positives = 30/33 (91%), Gaps = 3/33 (9%)\n"
        "\n"
        "Query  1   MKVLAAGIVGLCAWERTYHKLMNPQRSTXXWYV  33\n"
        "           MKVL+AGIVGLCA   TYHKLMNP+RSTXXWYV\n"
        "Sbjct  3   MKVLSAGIVGLCA---TYHKLMNPRRSTXXWYV  32\n"
        "\n"
        "\n"
        ">s2\n"
    )
    assert text.endswith("\n\nQuery= q2 none\n\nLength=3\n\n\n***** No hits found *****\n\n\n")


def test_text_of_the_reverse_strand(nucleotides: list[QueryHits]) -> None:
    assert (
        " Score = NA bits (29),  Expect = NA\n"
        " Identities = 20/22 (91%), Gaps = 2/22 (9%)\n"
        " Strand=Plus/Minus\n"
        "\n"
        "Query  5   GGATCCATTGCA--GTNACCGA  24\n"
        "           ||||||||||||  ||||||||\n"
        "Sbjct  24  GGATCCATTGCAGGGTNACCGA  3\n"
    ) in written(ScanFormat.TEXT, nucleotides)


def test_long_titles_are_cut_in_the_table_only() -> None:
    title = "s " + "x" * 90
    found = results("q", "MKV", FakeDatabase({title: "MKV"}), [Aligned(0, ("MKV", "MKV"), (0, 3, 0, 3))])
    lines = written(ScanFormat.TEXT, [found]).splitlines()
    assert lines[6] == "s " + "x" * 61 + "...    NA      NA"
    assert f">{title}" in lines


def test_json(proteins: list[QueryHits], nucleotides: list[QueryHits]) -> None:
    first, none = json.loads(written(ScanFormat.JSON, proteins))
    assert none == {"query": "q2", "query_length": 3, "hits": []}
    assert (first["query"], first["query_length"], len(first["hits"])) == ("q1", 49, 3)
    assert first["hits"][0] == {
        "subject": "s1", "title": "s1 a first title", "subject_length": 34,
        "score": 123, "bit_score": 104.96, "evalue": 3.215e-15, "strand": None,
        "query_start": 1, "query_end": 33, "subject_start": 3, "subject_end": 32,
        "columns": 33, "identity": 0.848485, "identities": 28, "positives": 30, "mismatches": 2,
        "gap_openings": 1, "gap_letters": 3, "cigar": "4=1X8=3I8=1X8=",
    }  # fmt: skip
    reverse = json.loads(written(ScanFormat.JSON, nucleotides))[0]["hits"][1]
    assert (reverse["strand"], reverse["subject_start"], reverse["subject_end"]) == ("-", 3, 24)
    assert (reverse["evalue"], reverse["bit_score"]) == (None, None)


def test_pysam_reads_the_sam_output(tmp_path: Path, nucleotides: list[QueryHits]) -> None:
    (tmp_path / "x.sam").write_text(written(ScanFormat.SAM, nucleotides))
    with pysam.AlignmentFile(str(tmp_path / "x.sam")) as sam:
        assert dict(zip(sam.references, sam.lengths, strict=True)) == {"c1": 35, "c2": 27}
        assert sam.header.to_dict()["PG"][0]["CL"] == "readmap scan a b"  # type: ignore[index]
        records: Any = list(sam)
    first, second, unmapped = records
    assert (first.flag, second.flag, unmapped.flag) == (0, 0x110, 4)
    assert (first.query_name, second.query_name, unmapped.query_name) == ("n1", "n1", "n2")
    assert unmapped.query_sequence == "ACGT"
    assert (first.cigarstring, first.mapping_quality) == ("3S8=1I10=1X5=4S", 255)
    assert first.query_sequence == DNA_QUERY
    assert second.cigarstring == "8H8=2D12=4H"
    assert second.query_sequence in reverse_complement(DNA_QUERY)
    for record, aligned in zip((first, second), DNA_HITS, strict=True):
        target = [*NUCLEOTIDES.sequences.values()][aligned.subject]
        pairs = record.get_aligned_pairs(matches_only=True)
        letters = list(zip(*(line for line in aligned.lines), strict=True))
        equal = sum(a == b for a, b in letters)
        assert sum(record.query_sequence[i] == target[j] for i, j in pairs) == equal
        assert record.get_tag("NM") == sum(a != b for a, b in letters)
        assert record.get_tag("AS") == aligned.score
    assert first.get_tag("PI") == pytest.approx(95.83)
    assert (first.get_tag("EV"), first.get_tag("BS")) == (pytest.approx(2e-7), pytest.approx(28.25))
    assert not second.has_tag("EV")


def test_sam_is_for_nucleotides_only() -> None:
    with pytest.raises(UsageError, match="SAM is for nucleotides"):
        writer(ScanFormat.SAM, PROTEINS, "1", "")


def test_invalid_sam_names_are_rejected() -> None:
    database = FakeDatabase({"a": "A", "b": "C", "a again": "G"}, "nucleotide")
    with pytest.raises(DataError, match=r"record 3 of the database \(a\): record 1 has the same name"):
        writer(ScanFormat.SAM, database, "1", "")
    database = FakeDatabase({"a": "A", "*": "C"}, "nucleotide")
    with pytest.raises(DataError, match=r"record 2 of the database \(\*\): its name is not valid in a SAM header"):
        writer(ScanFormat.SAM, database, "1", "")


def mutated(generator: random.Random, text: str, letters: str, share: float) -> str:
    """Return text with substitutions, deletions and insertions."""
    parts = []
    for letter in text:
        chance = generator.random()
        if chance < share:
            letter = generator.choice(letters)
        elif chance < 1.15 * share:
            letter = ""
        elif chance < 1.3 * share:
            letter += "".join(generator.choices(letters, k=generator.randrange(1, 9)))
        parts.append(letter)
    return "".join(parts)


def family(
    generator: random.Random, letters: str, shares: list[float], both_strands: bool
) -> tuple[str, dict[str, str]]:
    """Return a query, and subjects that contain parts of it."""
    query = "".join(generator.choices(letters, k=230))
    subjects = {}
    for number, share in enumerate(shares):
        start = generator.randrange(60)
        text = mutated(generator, query[start : start + generator.randrange(100, 200)], letters, share)
        if both_strands and number % 2:
            text = reverse_complement(text)
        subjects[f"s{number} of {share}"] = "".join(generator.choices(letters, k=number)) + text
    return query, subjects


def run_blast(program: str, folder: Path, outfmt: str) -> str:
    options = ["-comp_based_stats", "0", "-seg", "no"] if program == "blastp" else ["-task", "blastn", "-dust", "no"]
    files = ["-query", str(folder / "q.fa"), "-subject", str(folder / "s.fa")]
    command = [program, *files, *options, "-evalue", "50", "-outfmt", outfmt]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def found_by_blast(program: str, folder: Path, query: str, subjects: dict[str, str]) -> QueryHits:
    """Return BLAST's own alignments as results."""
    molecule = "protein" if program == "blastp" else "nucleotide"
    search = json.loads(run_blast(program, folder, "15"))["BlastOutput2"][0]["report"]["results"]["bl2seq"]
    aligned = []
    for hit in (hit for each in search for hit in each["hits"]):
        number = [*subjects].index(hit["description"][0]["title"])
        for part in hit["hsps"]:
            start, end = part["hit_from"] - 1, part["hit_to"]
            if reverse := part.get("hit_strand") == "Minus":
                start, end = hit["len"] - part["hit_from"], hit["len"] - part["hit_to"] + 1
            places = part["query_from"] - 1, part["query_to"], start, end
            facts = part["score"], part["bit_score"], part["evalue"]
            aligned.append(Aligned(number, (part["qseq"], part["hseq"]), places, *facts, reverse))
    return results("query it is", query, FakeDatabase(subjects, molecule), aligned)


@pytest.mark.parametrize("program", ["blastp", "blastn"])
def test_output_matches_blast(tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not there (Debian's ncbi-blast+)")
    letters = "ACDEFGHIKLMNPQRSTVWYX" if program == "blastp" else "ACGT"
    shares = [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6] if program == "blastp" else [0.01, 0.02, 0.05, 0.08, 0.1, 0.15]
    query, subjects = family(random.Random(8), letters, shares, program == "blastn")
    (tmp_path / "q.fa").write_text(f">query it is\n{query}\n")
    (tmp_path / "s.fa").write_text("".join(f">{title}\n{text}\n" for title, text in subjects.items()))
    found = found_by_blast(program, tmp_path, query, subjects)
    assert len(found) > 5
    assert {hit.reverse for hit in found} == ({True, False} if program == "blastn" else {False})
    # BLAST reports titles for databases only.
    columns = tuple(name for name in COLUMNS if name not in ("cigar", "stitle", "salltitles"))
    ours = written(ScanFormat.TAB, [found], columns).splitlines()
    for line, theirs in zip(ours, run_blast(program, tmp_path, " ".join(["6", *columns])).splitlines(), strict=True):
        assert dict(zip(columns, line.split("\t"), strict=True)) == dict(zip(columns, theirs.split("\t"), strict=True))
    # BLAST names each subject once, and pads its lines with blanks.
    assert alignments(written(ScanFormat.TEXT, [found])) == alignments(run_blast(program, tmp_path, "0"))


def alignments(text: str) -> list[str]:
    """Return each alignment from its score to its last line."""
    parts = ["\n".join(line.rstrip() for line in part.splitlines()) for part in text.split("\n Score = ")[1:]]
    return [part[: part.rindex("Sbjct")] + part[part.rindex("Sbjct") :].split("\n")[0] for part in parts]


def test_a_gap_longer_than_a_line() -> None:
    generator = random.Random(6)
    target = "".join(generator.choices("ACGT", k=300))
    query = target[:50] + target[210:]
    aligned = Aligned(0, (target[:50] + "-" * 160 + target[210:], target), (0, len(query), 0, 300))
    found = results("q", query, FakeDatabase({"s": target}, "nucleotide"), [aligned])
    lines = written(ScanFormat.TEXT, [found]).splitlines()
    rows = [line for line in lines if line.startswith("Query ")]
    assert rows[0] == f"Query  1    {target[:50]}----------  50"
    assert rows[1] == rows[2] == "Query       " + "-" * 60
    assert rows[3] == f"Query  51   {'-' * 30}{target[210:240]}  80"
    assert [line.split()[3] for line in lines if line.startswith("Sbjct ")] == ["60", "120", "180", "240", "300"]


def many() -> QueryHits:
    """Return 500 hits of 350 columns and 40 gaps."""
    query = "MKVLAAGIVGLCAWERTYHKLMNPQRSTWYVDHED" * 10
    line = "-".join(query[i : i + 8] for i in range(0, len(query), 8)) + "-" * 7
    target = "G".join(query[i : i + 8] for i in range(0, len(query), 8)) + "A" * 7
    aligned = Aligned(0, (line, target), (0, len(query), 0, len(target)), bit_score=310.2, evalue=1e-50)
    return results("q", query, FakeDatabase({"s title": target}), [aligned] * 500)


@pytest.mark.parametrize("format", [ScanFormat.TAB, ScanFormat.TEXT, ScanFormat.JSON])
def test_formatting_takes_microseconds_per_hit(format: ScanFormat) -> None:
    found = many()
    maker = writer(format, found.subjects, "1", "")
    began = time.process_time()
    maker.write(found, True, lambda written: None)
    # About ten times the usual time.
    assert time.process_time() - began < 500 * 2e-3


def test_names_that_are_not_utf8() -> None:
    database = FakeDatabase({"s": "MKV"})
    found = results("q", "MKV", database, [Aligned(0, ("MKV", "MKV"), (0, 3, 0, 3))])

    class Odd(FakeDatabase):
        titles = [b"\xff\xc3\xa9 x"]  # type: ignore[assignment]  # noqa: RUF012
        names = [b"\xff\xc3\xa9"]  # type: ignore[assignment]  # noqa: RUF012

    odd = QueryHits(found.query, found.hits, Odd({"s": "MKV"}), found.letter_scores)
    for format in (ScanFormat.TAB, ScanFormat.TEXT, ScanFormat.JSON):
        written = io.BytesIO()
        writer(format, odd.subjects, "1", "").write(odd, True, written.write)
        assert (b"\xff\xc3\xa9" in written.getvalue()) == (format is not ScanFormat.JSON)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        *(("x.tsv", ScanFormat.TAB), ("x.m8.gz", ScanFormat.TAB), ("a.b/x.sam.bgz", ScanFormat.SAM)),
        *(("x.json", ScanFormat.JSON), ("x.txt", ScanFormat.TEXT), ("x", None), (None, None)),
    ],
)
def test_endings(name: str | None, format: ScanFormat | None) -> None:
    assert format_by_ending(name, ENDINGS) is format
