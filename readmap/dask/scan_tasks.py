"""The tasks of a scan: each has neighbouring subjects of the database, which its worker keeps."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from readmap.backend.team import Team
from readmap.dask.worker import return_errors, take_turn, worker_backend
from readmap.database.database import Database, Titles
from readmap.database.device_pool import DevicePool
from readmap.database.folder import PADDING
from readmap.database.letters import PAD
from readmap.database.parameters import HitFilter, ScanScoring
from readmap.database.results import ScanHits
from readmap.database.search import Scan
from readmap.reads.sequences import Sequences


@dataclass(frozen=True)
class Part:
    """Neighbouring subjects of a database by their ranks: the longest one's is 0.

    path: of the folder, which all workers see. written: when its manifest was, by which a part is known.
    """

    path: str
    written: int
    first: int
    end: int


@return_errors
def check_database(path: str, device: str, threads: int | None) -> None:
    """Raise DatabaseFolderError where a database was altered."""
    with take_turn(), (backend := worker_backend(device, threads)).thread_stream():
        Database.open(path).check(backend)


@return_errors
def scan_part(
    part: Part, queries: Sequences, scoring: ScanScoring, hit_filter: HitFilter, device: str, threads: int | None
) -> list[ScanHits]:
    """The hits of each query among the subjects of a part; their numbers are those of the whole database."""
    with take_turn():
        numbers, database, pool = _hold_part(part, device, threads)
        with worker_backend(device, threads).thread_stream():
            found = [scanned.hits for scanned in Scan(database, scoring, hit_filter, pool)(queries)]
    return [replace(hits, subjects=numbers[hits.subjects]) for hits in found]


@functools.lru_cache(1)
def _hold_part(part: Part, device: str, threads: int | None) -> tuple[NDArray[np.int64], Database, DevicePool]:
    """The numbers of a part's subjects in the whole database, in their order; these subjects by themselves, and the
    device that keeps them."""
    whole = Database.open(part.path, check=False)
    first, end = part.first, part.end
    starts, lengths, order = (array[first:end] for array in (whole.starts, whole.lengths, whole.order))
    begin, letters = int(starts[0]) if end > first else 0, int(lengths.sum())
    numbers = np.sort(order)
    codes = np.concatenate([whole.codes[begin : begin + letters], np.full(PADDING, PAD, np.uint8)])
    own = np.searchsorted(numbers, order)
    database = Database(codes, starts - begin, np.array(lengths), own, Titles.of([]), whole.molecule, whole.source)
    return numbers, database, DevicePool(database, Team.of(worker_backend(device, threads)))
