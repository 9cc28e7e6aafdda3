"""The sorted records of a shard as files: any range of keys of all shards is merged from parts of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend
from readmap.backend.cpu import CpuBackend
from readmap.bam.order import record_keys
from readmap.bam.sorted_runs import Run
from readmap.dask.job import RECORDS

#: Beside the records, for each of them.
KEYS, BORDERS = "keys.npy", "borders.npy"

#: Bytes of records from one sampled key to the next; and of a range, about.
SAMPLED_BYTES, RANGE_BYTES = 1 << 20, 256 << 20

Keys = NDArray[np.uint64]
Places = NDArray[np.int64]


class Border(NamedTuple):
    """Between two ranges: in front of it are smaller keys, and of equal keys those of the shards before one."""

    key: int
    shard: int


class RunSidecar:
    """Hears of sorted records, and keeps their keys and where each ends."""

    def __init__(self, contigs: int) -> None:
        """contigs: of the header."""
        self._contigs, self._backend = contigs, CpuBackend(1)
        self._keys: list[Keys] = []
        self._borders: list[Places] = [np.zeros(1, np.int64)]

    def measure(
        self, records: Array, ends: Array, origin: int = 0, backend: Backend | None = None
    ) -> tuple[Keys, Places]:
        """The keys, and where records end; all is on the host."""
        keys, *_ = record_keys(records, np.diff(ends, prepend=0), ends, self._contigs, self._backend)
        return keys, ends.copy()

    def accumulate(self, seen: tuple[Keys, Places]) -> None:
        """Hear of the next records."""
        keys, ends = seen
        self._keys.append(keys)
        self._borders.append(ends + self._borders[-1][-1])

    def write(self, folder: Path) -> None:
        """Keep them beside the records."""
        np.save(folder / KEYS, np.concatenate([np.empty(0, np.uint64), *self._keys]))
        np.save(folder / BORDERS, np.concatenate(self._borders))

    def samples(self) -> Keys:
        """A key about every SAMPLED_BYTES of records, ascending."""
        keys, borders = np.concatenate([np.empty(0, np.uint64), *self._keys]), np.concatenate(self._borders)
        return keys[np.searchsorted(borders, np.arange(0, borders[-1], SAMPLED_BYTES), "right") - 1]


def borders_of(samples: Sequence[Keys]) -> list[Border]:
    """Borders between ranges of about RANGE_BYTES; samples: of each shard."""
    keys = np.concatenate([np.empty(0, np.uint64), *samples])
    shards = np.repeat(np.arange(len(samples)), [len(own) for own in samples])
    order = np.lexsort((shards, keys))[RANGE_BYTES // SAMPLED_BYTES :: RANGE_BYTES // SAMPLED_BYTES]
    return [*dict.fromkeys(Border(int(keys[at]), int(shards[at])) for at in order)]


def ranges(borders: Sequence[Border]) -> Iterator[tuple[Border | None, Border | None]]:
    """From border to border; None in front of all, and behind all."""
    return pairwise([None, *borders, None])


def open_part(folder: Path, shard: int, begin: Border | None, end: Border | None) -> Run:
    """The records of a shard in a range."""
    keys, borders = np.load(folder / KEYS, mmap_mode="r"), np.load(folder / BORDERS, mmap_mode="r")
    first = 0 if begin is None else _before(keys, begin, shard)
    last = len(keys) if end is None else _before(keys, end, shard)
    return Run(keys[first:last], borders[first : last + 1], 0, folder / RECORDS)


def _before(keys: Keys, border: Border, shard: int) -> int:
    """How many records of a shard are in front of a border."""
    return int(np.searchsorted(keys, np.uint64(border.key), "right" if shard < border.shard else "left"))
