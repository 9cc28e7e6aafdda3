"""parasail, the peer on the CPU: its striped 16-bit kernel, one call from Python per pair, with a profile per query."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.database.database import Database
from readmap.database.letters import LETTERS
from readmap.database.matrices import ScoreMatrix
from readmap.database.parameters import ScanScoring
from readmap.reads.sequences import Sequences

NAME = "sw_striped_profile_16"
SUBJECTS = 1000  # subjects per task of a thread

Score = Callable[[str], int]


def is_installed() -> bool:
    return find_spec("parasail") is not None


def scorer(query: str, costs: ScanScoring) -> Score:
    """Return parasail's score function of a query; a score that saturates 16 bits is computed again in 32 bits."""
    import parasail  # optional

    matrix, gaps = _matrix(costs.matrix), (costs.gap_open + costs.gap_extend, costs.gap_extend)
    narrow, broad = parasail.profile_create_16(query, matrix), parasail.profile_create_32(query, matrix)

    def score(subject: str) -> int:
        found = parasail.sw_striped_profile_16(narrow, subject, *gaps)
        if found.saturated:
            found = parasail.sw_striped_profile_32(broad, subject, *gaps)
        return int(found.score)

    return score


def _matrix(matrix: ScoreMatrix) -> Any:
    """Return readmap's matrix, since parasail's matrices differ in B, J, X and Z; unknown letters score like *."""
    import parasail

    made, known = parasail.matrix_create(LETTERS[:-1].tobytes().decode(), 1, -1), range(len(LETTERS))
    for row in known:
        for column in known:
            made[row, column] = int(matrix.scores[row, column])
    return made


def texts(database: Database) -> list[str]:
    """Return the sequences of a database as text, the longest first."""
    text = LETTERS[database.codes[: database.letters]].tobytes().decode()
    bounds = zip(database.starts.tolist(), database.lengths.tolist(), strict=True)
    return [text[start : start + length] for start, length in bounds]


def scores(queries: Sequences, database: Database, costs: ScanScoring, threads: int, work: Path) -> NDArray[np.int32]:
    """Return scores as int32 [queries, subjects], the longest subject first; cached in the work folder."""
    path = work / f"scan-scores-{_digest(queries, database, costs)}.npy"
    if path.exists():
        return np.load(path)  # type: ignore[no-any-return]
    print(f"parasail scores {len(queries) * len(database):,} pairs; the scores are stored in {path}", file=sys.stderr)
    found = _scores(queries, texts(database), costs, threads)
    partial = path.with_suffix(f".{os.getpid()}")
    with open(partial, "wb") as file:
        np.save(file, found)
    partial.replace(path)
    return found


def _scores(queries: Sequences, subjects: Sequence[str], costs: ScanScoring, threads: int) -> NDArray[np.int32]:
    found = np.zeros((len(queries), len(subjects)), np.int32)

    def fill(row: int, score: Score, first: int) -> None:
        some = subjects[first : first + SUBJECTS]
        found[row, first : first + len(some)] = [score(subject) for subject in some]

    # parasail releases the GIL.
    with ThreadPoolExecutor(threads) as pool:
        running = [
            pool.submit(fill, row, scorer(query.tobytes().decode(), costs), first)
            for row, query in enumerate(queries)
            for first in range(0, len(subjects), SUBJECTS)
        ]
        for done in running:
            done.result()
    return found


def _digest(queries: Sequences, database: Database, costs: ScanScoring) -> str:
    """Return a digest of everything the scores depend on."""
    import parasail

    gaps = costs.gap_open, costs.gap_extend
    digest = hashlib.sha256(f"{parasail.__version__} {NAME} {gaps}".encode())
    for array in (queries.letters, queries.offsets, database.codes, database.lengths, costs.matrix.scores):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
