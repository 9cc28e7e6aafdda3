"""The tasks of a scan: each searches consecutive subjects of the database, which its worker keeps."""

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
    """The subjects [first, end) of a database by rank; the longest one has rank 0. path: its folder, which all
    workers see. written: modification time of its manifest, which identifies its version."""

    path: str
    written: int
    first: int
    end: int


@return_errors
def check_database(path: str, device: str, threads: int | None) -> None:
    """Raise DatabaseFolderError if a database is damaged."""
    with take_turn(), (backend := worker_backend(device, threads)).thread_stream():
        Database.open(path).check(backend)


@return_errors
def scan_part(
    part: Part, queries: Sequences, scoring: ScanScoring, hit_filter: HitFilter, device: str, threads: int | None
) -> list[ScanHits]:
    """Return the hits of each query in a part; subjects have their indices in the whole database."""
    with take_turn():
        numbers, database, pool = _load_part(part, device, threads)
        with worker_backend(device, threads).thread_stream():
            found = [scanned.hits for scanned in Scan(database, scoring, hit_filter, pool)(queries)]
    return [replace(hits, subjects=numbers[hits.subjects]) for hits in found]


@functools.lru_cache(1)
def _load_part(part: Part, device: str, threads: int | None) -> tuple[NDArray[np.int64], Database, DevicePool]:
    """Return the indices of a part's subjects in the whole database, the part as a database, and its device."""
    whole = Database.open(part.path, check=False)
    first, end = part.first, part.end
    starts, lengths, order = (array[first:end] for array in (whole.starts, whole.lengths, whole.order))
    start, letters = int(starts[0]) if end > first else 0, int(lengths.sum())
    numbers = np.sort(order)
    codes = np.concatenate([whole.codes[start : start + letters], np.full(PADDING, PAD, np.uint8)])
    own = np.searchsorted(numbers, order)
    database = Database(codes, starts - start, np.array(lengths), own, Titles.of([]), whole.molecule, whole.source)
    return numbers, database, DevicePool(database, Team.of(worker_backend(device, threads)))
