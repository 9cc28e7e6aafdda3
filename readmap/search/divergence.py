"""Divergence: in how many bases the sample differs once from the reference, as its reads tell."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend, Kernel
from readmap.index.device import DeviceIndex
from readmap.search.batch import Searched
from readmap.search.parameters import CLEAN_BASES, WINDOWS

_MEASURE = Kernel("search/divergence", "measure_divergence")

#: Differences of reads that weigh as much as what is expected without them.
WEIGHT = 250

#: What is believed at most and at least, whatever the reads show.
MOST_CLEAN_BASES, LEAST_CLEAN_BASES = 2_000, 20

#: An error that is sure, in the kernel's units.
ONE_ERROR = 1 << 24


def measure_divergence(searched: Searched, most: int, index: DeviceIndex, backend: Backend) -> NDArray[np.int64]:
    """What the first `most` reads tell, in the order of the input: int64 [reads, 3], zeros where that is nothing.

    The columns are bases of good quality, differences among them, and errors that their qualities promise, in units of
    1 / ONE_ERROR.
    """
    reads, queries = searched.reads, searched.queries
    count = min(reads.count, most)
    tallies = backend.empty((count, 3), np.int64)
    backend.launch(
        _MEASURE,
        count,
        reads.bytes,
        reads.quality_starts,
        *queries.arguments,
        queries.slot_of,
        *index.reference,
        searched.windows.rows,
        searched.placements.chosen,
        searched.placements.mapqs,
        tallies,
        WINDOWS,
    )
    return backend.to_host(tallies)


def clean_bases(tallies: NDArray[Any]) -> int:
    """Bases with one difference of the sample: what differs more often than the qualities promise is the sample's."""
    bases, differences, errors = tallies.sum(axis=0, dtype=np.int64).tolist()
    real = max(differences - errors / ONE_ERROR, 0)
    told = (bases + WEIGHT * CLEAN_BASES) / (real + WEIGHT)
    return int(min(max(told, LEAST_CLEAN_BASES), MOST_CLEAN_BASES))
