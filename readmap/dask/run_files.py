"""The sorted records of a shard with a sidecar of their keys, by which tasks merge ranges of keys of all shards."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend
from readmap.backend.cpu import CpuBackend
from readmap.bam.order import record_keys
from readmap.bam.sorted_runs import Run
from readmap.dask.job import RECORDS

#: Sidecar files: the sort key of each record, and where each record starts and ends.
KEYS, BORDERS = "keys.npy", "borders.npy"
#: Bytes of records between two sampled keys, and the approximate size of a range.
SAMPLED_BYTES, RANGE_BYTES = 1 << 20, 256 << 20

Keys = NDArray[np.uint64]
Offsets = NDArray[np.int64]


class Border(NamedTuple):
    """A border between two ranges: before it are smaller keys, and equal keys of earlier shards."""

    key: int
    shard: int


class RunSidecar:
    """Collects the keys and ends of sorted records while they are written."""

    def __init__(self, contigs: int) -> None:
        self._contigs, self._backend = contigs, CpuBackend(1)
        self._keys: list[Keys] = []
        self._borders: list[Offsets] = [np.zeros(1, np.int64)]

    def measure(
        self, records: Array, ends: Array, origin: int = 0, backend: Backend | None = None
    ) -> tuple[Keys, Offsets]:
        """Return the keys of records, and a copy of their ends; all arrays are on the host."""
        keys, *_ = record_keys(records, np.diff(ends, prepend=0), ends, self._contigs, self._backend)
        return keys, ends.copy()

    def accumulate(self, seen: tuple[Keys, Offsets]) -> None:
        keys, ends = seen
        self._keys.append(keys)
        self._borders.append(ends + self._borders[-1][-1])

    def write(self, folder: Path) -> None:
        np.save(folder / KEYS, np.concatenate([np.empty(0, np.uint64), *self._keys]))
        np.save(folder / BORDERS, np.concatenate(self._borders))

    def samples(self) -> Keys:
        """Return a key about every SAMPLED_BYTES of records, ascending."""
        keys, borders = np.concatenate([np.empty(0, np.uint64), *self._keys]), np.concatenate(self._borders)
        return keys[np.searchsorted(borders, np.arange(0, borders[-1], SAMPLED_BYTES), "right") - 1]


def borders_of(samples: Sequence[Keys]) -> list[Border]:
    """Return the borders between ranges of about RANGE_BYTES of records; samples: RunSidecar.samples of each shard."""
    keys = np.concatenate([np.empty(0, np.uint64), *samples])
    shards = np.repeat(np.arange(len(samples)), [len(own) for own in samples])
    order = np.lexsort((shards, keys))[RANGE_BYTES // SAMPLED_BYTES :: RANGE_BYTES // SAMPLED_BYTES]
    return [*dict.fromkeys(Border(int(keys[at]), int(shards[at])) for at in order)]


def open_shard_run(folder: Path, shard: int, start: Border | None, end: Border | None) -> Run:
    """Open a shard's sorted records between two borders; folder: with its RECORDS and sidecar; shard: its index."""
    keys, borders = np.load(folder / KEYS, mmap_mode="r"), np.load(folder / BORDERS, mmap_mode="r")
    first = 0 if start is None else _before(keys, start, shard)
    last = len(keys) if end is None else _before(keys, end, shard)
    return Run(keys[first:last], borders[first : last + 1], 0, folder / RECORDS)


def _before(keys: Keys, border: Border, shard: int) -> int:
    return int(np.searchsorted(keys, np.uint64(border.key), "right" if shard < border.shard else "left"))
