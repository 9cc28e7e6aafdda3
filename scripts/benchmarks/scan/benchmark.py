"""scripts/benchmark scan: time scores by the query's length, and whole scans."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Options, Row, report_of_backend
from benchmarks.scan import peer
from benchmarks.scan.bars import BAR_LENGTH, hold_scan
from benchmarks.scan.checks import BLOSUM50, BLOSUM62, DNA, called, check_scan
from benchmarks.scan.inputs import contigs, proteins, random_dna, random_queries
from benchmarks.scan.times import Best, best_in_turn, partition_of_all, scores_of
from readmap.backend import Backend, open_backend
from readmap.backend.team import Team
from readmap.database.database import Database
from readmap.database.device_pool import DevicePool, Partition
from readmap.database.letters import codes_of
from readmap.database.parameters import HitFilter, ScanScoring
from readmap.database.search import Scan
from readmap.reads.sequences import Sequences

PROTEINS = {"cpu": 20_000, "cuda": 500_000}
MANY = 100_000  # proteins; in a smaller database the longest protein would dominate
BASES, DNA_QUERY = {"cpu": 10_000_000, "cuda": 200_000_000}, 1_000
LENGTHS = (10, 24, 63, 127, 189, 255, BAR_LENGTH, 511, 567, 1_000, 2_005, 3_005, 4_061, 5_478)
#: Lengths for BLOSUM50 and the papers' gap costs 10/2, which are 8/2 in readmap.
FEW_LENGTHS = (63, BAR_LENGTH, 1_000)
#: Filters of whole scans: the command's default, and a filter that aligns the maximum number of hits.
LIMITS = {"hits at E <= 10": HitFilter(), "hits at E <= 1,000": HitFilter(evalue=1000)}


def benchmark_scan(options: Options) -> tuple[Row, Row]:
    """Time scores by the query's length, and parasail's on one CPU thread; one query with uploads, and hits."""
    if options.figures and not find_spec("matplotlib"):
        sys.exit("benchmark: --figures needs matplotlib: pip install '.[benchmark]'")
    backend = open_backend(options.device, options.threads)
    if not peer.is_installed():
        print("parasail is not installed, so readmap runs alone")
    checked = check_scan(options, backend)
    count = options.proteins or PROTEINS[options.device]
    database = proteins(count, has_longest=count >= MANY)
    dna = contigs(options.bases or BASES[options.device])
    backends = [backend]
    if backend.name == "cpu" and backend.threads > 1:
        backends.insert(0, open_backend("cpu", 1))
    speeds, scans = list[Row](), list[Row]()
    for one in backends:
        speeds += time_lengths(database, options.lengths or LENGTHS, BLOSUM62, one, options.runs)
        speeds += time_lengths(database, options.lengths or FEW_LENGTHS, BLOSUM50, one, options.runs)
        scans += time_scans(database, one, options.runs)
        scans += time_dna(dna, one, options.runs)
    inputs = {"sequences": len(database), "letters": database.letters, "longest": database.longest}
    inputs |= {"contigs": len(dna), "bases": dna.letters}
    report = {**checked, "inputs": inputs, "speeds": speeds, "scans": scans}
    usual = not (options.proteins or options.lengths or options.bases)
    return report | {"bars": hold_scan(report, usual)}, report_of_backend(backend)


def time_lengths(
    database: Database, lengths: Sequence[int], costs: ScanScoring, backend: Backend, runs: int
) -> list[Row]:
    """Return a row for each length: scores copied to the host, with the database on the device."""
    partition, queries = partition_of_all(database, backend), random_queries(lengths)
    with_peer = backend.name == "cpu" and backend.threads == 1 and peer.is_installed()
    subjects = peer.texts(database) if with_peer else []
    scores_of(partition, [codes_of(queries.letters[:1])], costs)
    rows = []
    for query in queries:
        works, found = _works(query, costs, partition, subjects)
        best, cells = best_in_turn(works, runs, backend), len(query) * database.letters
        if with_peer and not np.array_equal(found["readmap"], found["parasail"]):
            sys.exit(f"benchmark: scores of a query of {len(query)} letters differ from parasail's")
        row = {"costs": called(costs), "query_letters": len(query), **_on(backend)}
        row |= best["readmap"].row(cells, backend)
        if with_peer:
            row |= best["parasail"].row(cells, backend, "parasail_")
        rows.append(row)
    backend.release_memory()
    return rows


def _works(
    query: NDArray[np.uint8], costs: ScanScoring, partition: Partition, subjects: Sequence[str]
) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
    """Return the functions to time (parasail's if there are subjects), and the dict that they fill with results."""
    found: dict[str, Any] = {}

    def ours() -> None:
        found["readmap"] = scores_of(partition, [codes_of(query)], costs)[0]

    def theirs() -> None:
        score = peer.scorer(query.tobytes().decode(), costs)
        found["parasail"] = [score(subject) for subject in subjects]

    return {"readmap": ours} | ({"parasail": theirs} if subjects else {}), found


def time_scans(database: Database, backend: Backend, runs: int) -> list[Row]:
    """Time scores of a resident database, scores with its upload, and whole scans with statistics and hits."""
    query = random_queries([BAR_LENGTH])
    best = _time_scores(database, codes_of(query.letters), backend, runs)
    found, hits = _time_hits(database, query, backend, runs)
    backend.release_memory()
    return [
        {"what": name, "letters": database.letters, "query_letters": BAR_LENGTH, **_on(backend)}
        | each.row(BAR_LENGTH * database.letters, backend)
        | {"hits": hits.get(name)}
        for name, each in (best | found).items()
    ]


def _time_scores(database: Database, codes: NDArray[np.uint8], backend: Backend, runs: int) -> dict[str, Best]:
    partition = partition_of_all(database, backend)
    scores_of(partition, [codes], BLOSUM62)
    resident = {"scores": lambda: scores_of(partition, [codes], BLOSUM62)}
    first = {"scores, database uploaded": lambda: scores_of(partition_of_all(database, backend), [codes], BLOSUM62)}
    best = best_in_turn(resident, runs, backend)
    return best | best_in_turn(first, runs, backend, before=backend.release_memory)


def _time_hits(
    database: Database, query: Sequences, backend: Backend, runs: int
) -> tuple[dict[str, Best], dict[str, int]]:
    """Return the best times of whole scans, and their numbers of hits."""
    hits: dict[str, int] = {}

    def work(name: str, scan: Scan) -> Callable[[], None]:
        def scan_all() -> None:
            hits[name] = sum(len(found.hits) for found in scan(query))

        return scan_all

    pool = DevicePool(database, Team.of(backend))
    works = {name: work(name, Scan(database, BLOSUM62, limits, pool)) for name, limits in LIMITS.items()}
    for first in works.values():
        first()
    return best_in_turn(works, runs, backend), hits


def time_dna(database: Database, backend: Backend, runs: int) -> list[Row]:
    """Time scores of both strands of contigs that are on the device."""
    query: Sequences = random_dna(DNA_QUERY)
    codes = [codes_of(strand.letters) for strand in (query, query.reverse_complements())]
    partition = partition_of_all(database, backend)
    scores_of(partition, codes, DNA)
    name = "DNA, both strands"
    best = best_in_turn({name: lambda: scores_of(partition, codes, DNA)}, runs, backend)[name]
    row = {"what": name, "letters": database.letters, "query_letters": DNA_QUERY, **_on(backend)}
    return [row | best.row(2 * DNA_QUERY * database.letters, backend)]


def _on(backend: Backend) -> Row:
    return {"device": backend.name, "threads": backend.threads}
