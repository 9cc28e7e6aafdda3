"""readmap.dask.scan: queries against a database whose parts the workers of a cluster hold."""

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
    """Find the hits of each query as `readmap.scan` does, by the workers of a Dask cluster, each with a part of the
    database.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    queries, matrix, match, mismatch, gap_open, gap_extend, strand, evalue, min_score, max_hits, database_letters
        As in `readmap.scan`.
    database : str or Path
        A folder of `readmap index --database` that all workers see. A worker reads only its part, and keeps it for the
        next scans.
    parts : int, optional
        The number of parts; default, the number of workers. The hits do not depend on it.
    device, threads : str, int
        Of each worker; default, the worker's own number of threads.
    check : bool
        Let a worker verify the checksums of the whole database first.

    Returns
    -------
    list of ScanHits
        For each query, the best hit first.

    Raises
    ------
    UsageError, DataError
        As in `readmap.scan`.
    DatabaseFolderError
        If the folder is missing or damaged.
    BackendError
        If the cluster fails.
    """
    expect_dask()
    from readmap.dask.scan_tasks import Part, check_database, scan_part

    path = Path(database).absolute()
    opened = Database.open(path)
    scoring = choose_scoring(opened.molecule, matrix, match, mismatch, gap_open, gap_extend)
    letters, subjects = database_letters or opened.letters or None, int(np.count_nonzero(opened.lengths)) or None
    strands = HitFilter.strand_of(opened.molecule, strand)
    hit_filter = HitFilter(evalue, min_score, max_hits, strands, letters, subjects)
    given = sequences_of("query", queries, opened.molecule)
    tasks = Tasks(client)
    if check:
        [*tasks.results([tasks.submit("check", 0, check_database, str(path), device, threads)])]
    written, cuts = (path / MANIFEST).stat().st_mtime_ns, _cuts(opened, parts or tasks.workers)
    workers, futures = tasks.addresses, []
    for number, bounds in enumerate(pairwise(cuts)):
        worker = workers[number % len(workers)]  # it may have kept the part of the last scan
        arguments = Part(str(path), written, *bounds), given, scoring, hit_filter, device, threads
        futures.append(tasks.submit("scan", number, scan_part, *arguments, workers=[worker], allow_other_workers=True))
    found = [*tasks.results(futures)]
    return [_best([part[query] for part in found], max_hits) for query in range(len(given))]


def _cuts(database: Database, parts: int) -> list[int]:
    """Return the bounds of at most `parts` ranges of subject ranks with about equal numbers of letters."""
    wanted = database.letters * np.arange(1, parts) // parts
    return [*sorted({0, *np.searchsorted(database.starts, wanted).tolist()} - {len(database)}), len(database)]


def _best(parts: Sequence[ScanHits], limit: int) -> ScanHits:
    """Return the `limit` best hits of a query in all parts, the best first."""
    names = ("subjects", "reverse", "scores", "bit_scores", "evalues")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    order = np.lexsort((columns["reverse"], columns["subjects"], -columns["scores"].astype(np.int64)))[:limit]
    alignments = join_alignments([part.alignments for part in parts])
    chosen = join_alignments([alignments.part(0, 0), *(alignments.part(at, at + 1) for at in order.tolist())])
    return ScanHits(parts[0].query, **{name: column[order] for name, column in columns.items()}, alignments=chosen)
