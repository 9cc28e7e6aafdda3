"""readmap.dask.scan: queries against a database that is divided among the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from readmap.dask.cluster import Tasks, expect_dask
from readmap.database.api import Texts, sequences_of
from readmap.database.database import Database
from readmap.database.parameters import MAX_HITS, HitFilter, choose_scoring
from readmap.database.results import ScanHits
from readmap.formats.array_folder import MANIFEST
from readmap.pairwise.alignments import join_alignments


def scan(
    client: Any,
    queries: Texts,
    database: str | Path,
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
    parts: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> list[ScanHits]:
    """The hits of each query, as readmap.scan finds them, by the workers of a cluster, which have a part each.

    client: of distributed. database: a folder that `readmap index --database` has made, which all workers see; a worker
    reads no more of it than its part, which it keeps from scan to scan.
    parts: of the database; None for as many as there are workers: the hits are the same for any number.
    device, threads: of each worker, whose own number of threads is the default. check: whether one of them holds the
    whole database to its checksums first. The other arguments are those of readmap.scan.
    Raises the errors of readmap.scan, DatabaseFolderError where there is no such folder, and BackendError where the
    cluster fails.
    """
    expect_dask()
    from readmap.dask.scan_tasks import Part, check_database, scan_part

    path = Path(database).absolute()
    opened = Database.open(path)
    scoring = choose_scoring(opened.molecule, matrix, match, mismatch, gap_open, gap_extend)
    hit_filter = HitFilter(
        evalue,
        min_score,
        max_hits,
        HitFilter.strand_of(opened.molecule, strand),
        database_letters or opened.letters or None,
        int(np.count_nonzero(opened.lengths)) or None,
    )
    given = sequences_of("query", queries, opened.molecule)
    tasks = Tasks(client)
    if check:
        [*tasks.results([tasks.submit("check", 0, check_database, str(path), device, threads)])]
    written, cuts = (path / MANIFEST).stat().st_mtime_ns, _cuts(opened, parts or tasks.workers)
    workers = tasks.addresses
    futures = [
        tasks.submit(
            "scan",
            number,
            scan_part,
            Part(str(path), written, *part),
            given,
            scoring,
            hit_filter,
            device,
            threads,
            workers=[workers[number % len(workers)]],  # which has it from the last scan
            allow_other_workers=True,
        )
        for number, part in enumerate(pairwise(cuts))
    ]
    found = [*tasks.results(futures)]
    return [_best([part[query] for part in found], max_hits) for query in range(len(given))]


def _cuts(database: Database, parts: int) -> list[int]:
    """Ranks between parts of about as many letters; no part is empty, but where the database is."""
    wanted = database.letters * np.arange(1, parts) // parts
    return [*sorted({0, *np.searchsorted(database.starts, wanted).tolist()} - {len(database)}), len(database)]


def _best(parts: Sequence[ScanHits], most: int) -> ScanHits:
    """The best hits of a query in all parts, in their order among all."""
    names = ("subjects", "reverse", "scores", "bit_scores", "evalues")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    order = np.lexsort((columns["reverse"], columns["subjects"], -columns["scores"].astype(np.int64)))[:most]
    alignments = join_alignments([part.alignments for part in parts])
    chosen = join_alignments([alignments.part(0, 0), *(alignments.part(at, at + 1) for at in order.tolist())])
    return ScanHits(parts[0].query, **{name: column[order] for name, column in columns.items()}, alignments=chosen)
