"""Compare exact search of E. coli with bowtie and mummer: counts and locations of 100,000 queries."""

import gzip
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from examples import below, random_bases
from numpy.typing import NDArray
from oracles.alignment import reverse_complement

from readmap.index.building import build_index
from readmap.index.index import Index
from readmap.index.occurrences import Locations

#: mummer takes queries of one length at a time; the short queries occur often.
LENGTHS = (10, 20, 36, 50, 90)
QUERIES_PER_LENGTH = 20_000

#: Rows of query, 0-based start and strand (1 or -1), sorted.
Rows = NDArray[np.int64]


@pytest.fixture(scope="module")
def ecoli(shared: Path) -> Path:
    folder = shared / "data/ecoli"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return folder


@pytest.fixture(scope="module")
def genome(ecoli: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the only contig as FASTA, with its name cut at the first blank as both programs do."""
    path = tmp_path_factory.mktemp("ecoli") / "genome.fa"
    path.write_bytes(gzip.decompress((ecoli / "mg1655.fa.gz").read_bytes()))
    return path


@pytest.fixture(scope="module")
def index(genome: Path) -> Index:
    return build_index(genome, structure="both")


@pytest.fixture(scope="module")
def queries(ecoli: Path, genome: Path) -> dict[int, list[str]]:
    """Return queries by length: two in five from real reads, two in five from both strands of the genome, the rest
    random.
    """
    generator = random.Random(121)
    letters = "".join(genome.read_text().split("\n")[1:])
    reads = []
    for name in ("reads_1.fq.gz", "reads_2.fq.gz"):
        reads += gzip.decompress((ecoli / name).read_bytes()).decode().split("\n")[1::4]
    drawn: dict[int, list[str]] = {}
    for length in LENGTHS:
        long_enough = [read for read in reads if len(read) >= length]
        pieces = []
        for number in range(QUERIES_PER_LENGTH):
            source = long_enough[below(generator, len(long_enough))] if number % 5 < 2 else letters
            start = below(generator, len(source) - length + 1)
            piece = source[start : start + length] if number % 5 < 4 else random_bases(generator, length)
            pieces.append(reverse_complement(piece) if number % 5 == 3 else piece)
        half = letters[1_000 : 1_000 + length // 2]
        # A palindrome (of an even length), both ends of the genome, an ambiguous base, a letter in lower case.
        special = [half + reverse_complement(half), letters[:length], letters[-length:], "N" + pieces[4][1:]]
        drawn[length] = [*pieces[: -len(special) - 1], *special, pieces[3].lower()]
    return drawn


def sort_rows(rows: NDArray[np.int64] | Sequence[tuple[int, int, int]]) -> Rows:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return table[np.lexsort(table.T[::-1])]


def rows_of(places: Locations) -> Rows:
    numbers = np.repeat(np.arange(len(places.totals)), places.totals)
    return sort_rows(np.stack([numbers, places.starts, places.strands.astype(np.int64)], axis=1))


def run(*command: str | Path) -> Iterator[str]:
    """Return the lines of a program's output."""
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    yield from done.stdout.splitlines()


def write_queries(queries: Sequence[str], path: Path) -> Path:
    path.write_text("".join(f">{number}\n{bases}\n" for number, bases in enumerate(queries)))
    return path


@pytest.fixture(scope="module")
def bowtie(genome: Path) -> Callable[[Path, int], Rows]:
    """Return a function that runs bowtie -v 0 -a: all exact occurrences on both strands."""
    if not shutil.which("bowtie") or not shutil.which("bowtie-build"):
        pytest.skip("bowtie is not installed")
    made = genome.with_name("bowtie")
    list(run("bowtie-build", "-q", genome, made))

    def search(path: Path, length: int) -> Rows:
        columns = run("bowtie", "-v", "0", "-a", "-f", "--quiet", "--suppress", "3,5,6,7,8", made, path)
        rows = (line.split("\t") for line in columns)
        return sort_rows([(int(query), int(start), 1 if strand == "+" else -1) for query, strand, start in rows])

    return search


@pytest.fixture(scope="module")
def mummer(genome: Path) -> Callable[[Path, int], Rows]:
    """Return a function that runs mummer -maxmatch on queries of one length and keeps the matches that span them.

    The output has a header per query, and one with "Reverse" for its reverse strand. Each match follows its header:
    start in the genome, start in the (reversed) query, both 1-based, and length.
    """
    if not shutil.which("mummer"):
        pytest.skip("mummer is not installed")

    def search(path: Path, length: int) -> Rows:
        rows = []
        query, strand = -1, 1
        for line in run("mummer", "-maxmatch", "-b", "-n", "-F", "-l", str(length), genome, path):
            words = line.split()
            if words[0] == ">":
                query, strand = int(words[1]), -1 if words[2:] == ["Reverse"] else 1
                continue
            _, start, query_start, matched = words
            assert (int(query_start), int(matched)) == (1, length)
            rows.append((query, int(start) - 1, strand))
        return sort_rows(rows)

    return search


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("peer", ["bowtie", "mummer"])
def test_same_locations(
    request: pytest.FixtureRequest,
    backends: str,
    index: Index,
    queries: dict[int, list[str]],
    tmp_path: Path,
    peer: str,
    length: int,
) -> None:
    search: Callable[[Path, int], Rows] = request.getfixturevalue(peer)
    asked = queries[length]
    expected = search(write_queries(asked, tmp_path / "queries.fa"), length)
    totals = np.bincount(expected[:, 0], minlength=len(asked))
    assert np.count_nonzero(totals) > len(asked) // 2
    assert np.count_nonzero(totals == 0) > len(asked) // 10 or length == 10
    assert np.count_nonzero(totals > 1) > 100
    palindromes = [number for number, query in enumerate(asked) if query == reverse_complement(query)]
    assert any(totals[palindromes]) or length > 10
    for structure in ("array", "tree"):
        assert np.array_equal(index.count(asked, structure=structure, device=backends), totals)
        places = index.locate(asked, structure=structure, device=backends)
        assert np.array_equal(rows_of(places), expected)
        assert not places.contigs.any()
        assert np.array_equal(places.ends - places.starts, np.full(len(places), length))
