"""Checks before timing; each exits with a message if two results differ."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Options, Row, backends_to_check
from benchmarks.scan import peer
from benchmarks.scan.inputs import Inputs, contigs, human, proteins, similar_queries
from benchmarks.scan.times import partition_of_all, scores_of
from readmap.backend import Backend
from readmap.database.letters import codes_of
from readmap.database.matrices import nucleotides, standard
from readmap.database.parameters import ScanScoring
from readmap.reads.sequences import concatenate

BLOSUM62, BLOSUM50 = ScanScoring.of(standard("BLOSUM62")), ScanScoring.of(standard("BLOSUM50"), 8, 2)
DNA = ScanScoring.of(nucleotides(2, 3))

PROTEINS, LENGTHS = 2_000, (24, 63, 127, 255, 374, 511, 1_000, 2_005, 7_000)  # the last query scores beyond 16 bits
BASES, LONGEST, DNA_LENGTHS = 300_000, 100_000, (150, 1_000, 3_000)


class Check(NamedTuple):
    """Scores to compare. of: the number of queries, including omitted ones."""

    inputs: Inputs
    costs: ScanScoring
    of: int
    backends: Mapping[str, Backend]


def check_scan(options: Options, backend: Backend) -> Row:
    """Check that all backends compute the same scores, and parasail's if it is installed."""
    rows = [_hold(check, options) for check in _checks(options, backend)]
    return {"checked": True, "same_as_parasail": peer.is_installed(), "checks": rows}


def called(costs: ScanScoring) -> str:
    return f"{costs.matrix.name} {costs.gap_open}/{costs.gap_extend}"


def _checks(options: Options, backend: Backend) -> list[Check]:
    """Return the checks: the human proteome by the timed backend only, since it is large; small inputs by all."""
    backends, checks = backends_to_check(options, backend), []
    real = human()
    if real is None:
        print("the human proteome and the papers' queries are not there, so only synthetic proteins are checked")
    elif options.queries != 0:
        of = len(real.queries)
        count = of if options.queries is None else min(options.queries, of)
        chosen = real._replace(queries=real.queries.part(0, count))
        checks.append(Check(chosen, BLOSUM62, of, {backend.name: backend}))
    database = proteins(PROTEINS, has_longest=True)
    synthetic = Inputs("synthetic proteins", similar_queries(database, LENGTHS), database)
    checks += [Check(synthetic, costs, len(LENGTHS), backends) for costs in (BLOSUM62, BLOSUM50)]
    database = contigs(BASES, LONGEST)
    queries = similar_queries(database, DNA_LENGTHS)
    strands = concatenate([queries, queries.reverse_complements()])
    checks.append(Check(Inputs("contigs, both strands", strands, database), DNA, len(strands), backends))
    return checks


def _hold(check: Check, options: Options) -> Row:
    """Run a check and return what was compared."""
    (name, queries, database), costs = check.inputs, check.costs
    found = {}
    if peer.is_installed():
        found["parasail"] = peer.scores(queries, database, costs, options.threads, options.work)
    codes = [codes_of(letters) for letters in queries]
    for way, backend in check.backends.items():
        found[way] = scores_of(partition_of_all(database, backend), codes, costs)
        backend.release_memory()
    first, expected = next(iter(found.items()))
    for way, scores in found.items():
        if not np.array_equal(scores, expected):
            _fail(check, first, expected, way, scores)
    row: Row = {"what": name, "costs": called(costs), "queries": len(queries), "of": check.of}
    row |= {"sequences": len(database), "letters": database.letters, "pairs": expected.size}
    return row | {"highest_score": int(expected.max(initial=0)), "same": ", ".join(found)}


def _fail(check: Check, first: str, expected: NDArray[np.int32], way: str, scores: NDArray[np.int32]) -> NoReturn:
    """Exit with the first pair whose scores differ."""
    name, queries, database = check.inputs
    query, rank = np.argwhere(scores != expected)[0].tolist()
    pair = f"{queries.names[query].decode()} and {database.names[int(database.order[rank])].decode()}"
    two = f"{scores[query, rank]} by {way} and {expected[query, rank]} by {first}"
    sys.exit(f"benchmark: {name}, {called(check.costs)}: {pair} score {two}, so nothing is timed")
