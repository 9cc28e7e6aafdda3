"""The Python function readmap.scan."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from readmap.backend import Gpus
from readmap.backend.devices import ALL
from readmap.backend.team import Team
from readmap.database.database import Database, open_database
from readmap.database.device_pool import DevicePool
from readmap.database.parameters import MAX_HITS, HitFilter, choose_scoring
from readmap.database.results import ScanHits
from readmap.database.search import Scan
from readmap.formats.alphabets import Alphabet
from readmap.reads.sequences import Sequences, normalize_letters

#: Sequences as accepted from Python: one, several, or several by name.
Texts = str | bytes | Iterable[str | bytes] | Mapping[str, str | bytes] | Sequences


def scan(
    queries: Texts,
    database: Database | str | Path | Texts,
    *,
    matrix: str | None = None,
    match: int | None = None,
    mismatch: int | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    strand: str | None = None,
    evalue: float | None = None,
    min_score: int = 1,
    max_hits: int = MAX_HITS,
    database_letters: int | None = None,
    device: str = "auto",
    gpus: Gpus = ALL,
    threads: int | None = None,
) -> list[ScanHits]:
    """Return the hits of each query in a database, the best hit first, as `readmap scan` does.

    Parameters
    ----------
    queries : str, bytes, iterable or mapping
        One sequence, several sequences, or sequences by name, of the same molecule as the database.
    database : Database, path, iterable or mapping
        A database, the path of a database folder or a FASTA file, or sequences. Sequences are proteins unless `match`
        or `mismatch` is given.
    matrix : str, optional
        Protein matrix: BLOSUM45, 50, 62, 80 or 90, PAM30, 70 or 250, or the path of a file in NCBI's format.
        Default: BLOSUM62.
    match, mismatch : int, optional
        Nucleotide scores, the mismatch as a positive penalty. Default: 2 and 3.
    gap_open, gap_extend : int, optional
        A gap of k letters costs gap_open + k * gap_extend. Default: BLAST's costs for the matrix or scores.
    strand : {"forward", "reverse", "both"}, optional
        Strands of nucleotide subjects to search. Default: both.
    evalue : float, optional
        Maximum E-value of a hit. Default: 10, or no limit if the scoring has no published statistics.
    min_score : int
        Minimum score of a hit.
    max_hits : int
        Maximum number of hits per query.
    database_letters : int, optional
        Database size for E-values. Default: the size of the database.
    device : str
        "auto", "cpu", "cuda" or "cuda:N", as for the option --device.
    gpus : int, sequence of int or "all"
        Number or indices of the GPUs to use.
    threads : int, optional
        Number of CPU threads. Default: all processors available to this process.

    Returns
    -------
    list of ScanHits
        One per query.

    Raises
    ------
    DataError
        If a sequence contains an invalid letter.
    UsageError
        If an argument is invalid.
    """
    opened = _database(database, match is not None or mismatch is not None)
    scoring = choose_scoring(opened.molecule, matrix, match, mismatch, gap_open, gap_extend)
    hit_filter = HitFilter(evalue, min_score, max_hits, HitFilter.strand_of(opened.molecule, strand), database_letters)
    given = sequences_of("query", queries, opened.molecule)
    with Team.open(device, gpus, threads) as team:
        team.submit(0, partial(opened.check, team.first)).result()
        return [scanned.hits for scanned in Scan(opened, scoring, hit_filter, DevicePool(opened, team))(given)]


def _database(given: Database | str | Path | Texts, are_nucleotides: bool) -> Database:
    """Return a given database, open the database or FASTA file at a path, or build a database from sequences."""
    if isinstance(given, Database):
        return given
    if isinstance(given, str | Path):
        return open_database(str(given))
    molecule = Alphabet.NUCLEOTIDES if are_nucleotides else Alphabet.PROTEINS
    return Database.of(sequences_of("subject", given, molecule), molecule)


def sequences_of(kind: str, given: Texts, molecule: Alphabet) -> Sequences:
    """Return sequences given from Python, unnamed ones as `kind`1, `kind`2, ...; DataError for invalid letters."""
    if isinstance(given, Sequences):
        return given
    if isinstance(given, str | bytes):
        given = [given]
    named = given if isinstance(given, Mapping) else {f"{kind}{i + 1}": text for i, text in enumerate(given)}
    parts = [normalize_letters(name, text, molecule) for name, text in named.items()]
    return Sequences.of([name.encode() for name in named], parts)
