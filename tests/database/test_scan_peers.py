"""Compare scans of real proteins and a real genome with ssearch36, blastp and blastn: scores, positions, E-values."""

import gzip
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from examples import fasta
from oracles.alignment import reverse_complement
from pair_examples import mutated
from protein_examples import LETTERS

from readmap.backend import open_backend
from readmap.backend.team import Team
from readmap.database.database import open_database
from readmap.database.device_pool import DevicePool
from readmap.database.matrices import nucleotides, standard
from readmap.database.parameters import HitFilter, ScanScoring
from readmap.database.results import QueryHits, ScanQuery
from readmap.database.search import Scan
from readmap.reads.sequences import read_sequences

#: The compared columns, by BLAST's names.
COLUMNS = (
    *("qseqid", "sseqid", "score", "qstart", "qend", "sstart", "send", "evalue", "bitscore"),
    *("length", "pident"),
)
PLACES, STATISTICS = slice(3, 7), slice(7, 9)

#: A globin, ras, glutathione transferase, trypsin, cytochrome P450, an ATP synthase, and a channel of 2,005 residues.
NAMES = ("P02232", "P01111", "P14942", "P00762", "P10635", "P25705", "P04775")

#: One of this number of sequences of the proteome is in the database.
STEP = 19

Row = list[str]


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def output(*command: str | Path, folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def records(path: Path, is_wanted: Callable[[int, str], bool]) -> str:
    """Return some records of a file, selected by index and header."""
    texts = gzip.decompress(path.read_bytes()).decode().split(">")[1:]
    return "".join(f">{text}" for number, text in enumerate(texts) if is_wanted(number, text.split("\n")[0]))


@pytest.fixture(scope="module")
def proteins(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("proteins")
    source = shared / "data/protein"
    if not source.is_dir():
        pytest.skip(f"{source} is not there")
    (folder / "queries.fa").write_text(records(source / "queries.fa.gz", lambda _, title: title[3:9] in NAMES))
    (folder / "db.fa").write_text(records(source / "human_proteome.fa.gz", lambda number, _: number % STEP == 0))
    return folder


@pytest.fixture(scope="module")
def genome(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cut E. coli into pieces; queries are mutated parts of them, from either strand."""
    folder = tmp_path_factory.mktemp("genome")
    source = shared / "data/ecoli/mg1655.fa.gz"
    if not source.is_file():
        pytest.skip(f"{source} is not there")
    draw = random.Random(12)
    text = "".join(gzip.decompress(source.read_bytes()).decode().split("\n")[1:])[:300_000]
    pieces = {f"piece{number}": text[number * 5000 :][:5000] for number in range(60)}
    queries = {}
    for number in range(30):
        start = draw.randrange(len(text) - 500)
        letters = mutated(draw, text[start:][: draw.randrange(60, 500)], draw.choice([0.02, 0.08, 0.15]), LETTERS)
        letters = "".join(letter if letter in "ACGT" else "A" for letter in letters)
        queries[f"q{number}"] = reverse_complement(letters) if number % 2 else letters
    (folder / "queries.fa").write_bytes(fasta(queries))
    (folder / "db.fa").write_bytes(fasta(pieces))
    return folder


def scanned(folder: Path, scoring: ScanScoring, hit_filter: HitFilter) -> list[Row]:
    """Return the best hit of each query with each subject."""
    database = open_database(str(folder / "db.fa"))
    queries = read_sequences(str(folder / "queries.fa"), 1, database.molecule)
    rows = []
    pool = DevicePool(database, Team.of(open_backend("cpu", threads=2)))
    for found in Scan(database, scoring, hit_filter, pool)(queries):
        number = found.hits.query
        letters = queries.letters[queries.offsets[number] : queries.offsets[number + 1]]
        query = ScanQuery(queries.names[number], queries.titles[number], letters)
        hits = QueryHits(query, found.hits, database, scoring.matrix.scores)
        rows += b"".join(records(hits, COLUMNS)).decode().splitlines()
    return best([row.split("\t") for row in rows])


def best(rows: list[Row]) -> list[Row]:
    """Return the first row of each query and subject."""
    return list({(row[0], row[1]): row for row in reversed(rows)}.values())[::-1]


def blast(program: str, folder: Path, *options: str) -> list[Row]:
    kind = "prot" if program == "blastp" else "nucl"
    output("makeblastdb", "-in", "db.fa", "-dbtype", kind, "-out", f"db.{kind}", folder=folder)
    columns = f"6 {' '.join(COLUMNS)}"
    command = (program, "-query", "queries.fa", "-db", f"db.{kind}", "-max_target_seqs", "500", "-outfmt", columns)
    return best([row.split("\t") for row in output(*command, *options, folder=folder).splitlines()])


def compare(rows: list[Row], theirs: list[Row]) -> tuple[int, int, int, int]:
    """Count BLAST's hits, those with the best score, those in the same positions, and those with equal rows.

    BLAST misses hits and parts of weak hits. E-values and bit scores are equal if the scores are.
    """
    mine = {(row[0], row[1]): row for row in rows}
    scored, placed, same = 0, 0, 0
    for row in theirs:
        own = mine[row[0], row[1]]
        assert int(own[2]) >= int(row[2]), (own, row)
        if own[2] == row[2]:
            assert own[STATISTICS] == row[STATISTICS], (own, row)
            scored += 1
            placed += own[PLACES] == row[PLACES]
            same += own == row
    return len(theirs), scored, placed, same


@pytest.mark.parametrize(("name", "gaps"), [("BLOSUM62", (11, 1)), ("BLOSUM45", (14, 2)), ("PAM70", (10, 1))])
def test_proteins_match_blastp(proteins: Path, name: str, gaps: tuple[int, int]) -> None:
    """For BLOSUM62, 76 of 94 hits are complete; of these, 74 have the same positions and 71 the same columns."""
    need("blastp", "makeblastdb")
    options = f"-comp_based_stats 0 -seg no -matrix {name} -gapopen {gaps[0]} -gapextend {gaps[1]}"
    theirs = blast("blastp", proteins, *options.split())
    hits, scored, placed, same = compare(scanned(proteins, ScanScoring(standard(name), *gaps), HitFilter()), theirs)
    assert scored >= 0.75 * hits > 50
    assert placed >= 0.95 * scored
    assert same >= 0.9 * placed


def test_nucleotides_match_blastn(genome: Path) -> None:
    need("blastn", "makeblastdb")
    options = "-task blastn -reward 2 -penalty -3 -gapopen 5 -gapextend 2 -word_size 7 -dust no -evalue 1e-3"
    theirs = blast("blastn", genome, *options.split())
    found = scanned(genome, ScanScoring.of(nucleotides(2, 3)), HitFilter(evalue=1e-3))
    hits, _, placed, same = compare(found, theirs)
    assert placed == hits == len(found) > 40
    assert same >= 0.9 * hits


SSEARCH_HIT = re.compile(
    r"^>>(?!>)(\S+).*?; sw_score: (\d+)\n" + 2 * r".*?; al_start: (\d+)\n; al_stop: (\d+)\n", re.MULTILINE | re.DOTALL
)


def ssearch(folder: Path, most: int, *options: str) -> dict[tuple[str, str], list[int]]:
    """Return score and 1-based first and last positions in the query and the subject, by query and subject."""
    command = ("ssearch36", "-q", "-m", "10", "-E", "1000", "-b", str(most), "-d", str(most), *options)
    parts = re.split(r"^>>>(?!>)", output(*command, "queries.fa", "db.fa", folder=folder), flags=re.MULTILINE)[1:]
    found = {}
    for part in parts:
        for subject, *numbers in SSEARCH_HIT.findall(part):
            found[part.split(",")[0].split()[0], subject] = [int(number) for number in numbers]
    return found


@pytest.mark.parametrize(("name", "gaps"), [("BL62", (11, 1)), ("BL50", (8, 2))])
def test_top_hits_match_ssearch(proteins: Path, name: str, gaps: tuple[int, int]) -> None:
    """Since version 35 ssearch defines gap costs as BLAST does."""
    need("ssearch36")
    theirs = ssearch(proteins, 15, "-s", name, "-f", str(-gaps[0]), "-g", str(-gaps[1]), "-z", "11")
    assert len(theirs) > 80
    scoring = ScanScoring(standard(name.replace("BL", "BLOSUM")), *gaps)
    hit_filter = HitFilter(evalue=None if scoring.statistics is None else 1e9, max_hits=200)
    rows = scanned(proteins, scoring, hit_filter)
    mine = {(row[0], row[1]): [int(number) for number in row[2:7]] for row in rows}
    same = 0
    for pair, numbers in theirs.items():
        assert mine[pair][0] == numbers[0], pair
        same += mine[pair] == numbers
    # The other hits have several best alignments.
    assert same >= 0.9 * len(theirs)
