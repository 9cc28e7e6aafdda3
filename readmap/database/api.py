"""readmap.scan: queries against a database, from Python."""

from __future__ import annotations

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
from readmap.reads.sequences import Sequences, checked

#: Of Python: a sequence, several, or several by their names.
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
    """The hits of each query in a database, the best first, as `readmap scan` finds them.

    queries: a sequence, several, or a mapping of names to sequences; letters of the database's kind.
    database: a Database, a path to its folder or to FASTA, or sequences in a list or a mapping: proteins, unless
        match or mismatch is given.
    matrix: of proteins: BLOSUM45, 50, 62, 80 or 90, PAM30, 70 or 250, or a file in NCBI's format (default: BLOSUM62).
    match, mismatch: of nucleotides, the mismatch as a positive number (default: 2 and 3).
    gap_open, gap_extend: a gap of k letters costs gap_open + k * gap_extend (default: BLAST's for the scores).
    strand: of nucleotides: forward, reverse or both (default), strands of the subjects.
    evalue, min_score, max_hits, database_letters: see HitFilter.
    device, threads: as the command's. gpus: how many, or the numbers of some, or "all".
    Raises DataError where a sequence has what is no letter, UsageError for options that are none.
    """
    opened = _database(database, match is not None or mismatch is not None)
    scoring = choose_scoring(opened.molecule, matrix, match, mismatch, gap_open, gap_extend)
    hit_filter = HitFilter(evalue, min_score, max_hits, HitFilter.strand_of(opened.molecule, strand), database_letters)
    given = sequences_of("query", queries, opened.molecule)
    with Team.open(device, gpus, threads) as team:
        team.submit(0, partial(opened.check, team.first)).result()
        return [scanned.hits for scanned in Scan(opened, scoring, hit_filter, DevicePool(opened, team))(given)]


def _database(given: Database | str | Path | Texts, are_nucleotides: bool) -> Database:
    if isinstance(given, Database):
        return given
    if isinstance(given, str | Path):
        return open_database(str(given))
    molecule = Alphabet.NUCLEOTIDES if are_nucleotides else Alphabet.PROTEINS
    return Database.of(sequences_of("subject", given, molecule), molecule)


def sequences_of(kind: str, given: Texts, molecule: Alphabet) -> Sequences:
    """The sequences that are given from Python; kind: what those without names are called. Raises DataError."""
    if isinstance(given, Sequences):
        return given
    if isinstance(given, str | bytes):
        given = [given]
    named = given if isinstance(given, Mapping) else {f"{kind}{i + 1}": text for i, text in enumerate(given)}
    parts = [checked(name, text, molecule) for name, text in named.items()]
    return Sequences.of([name.encode() for name in named], parts)
