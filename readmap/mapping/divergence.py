"""Divergence: in how many bases the sample differs once from the reference, as its reads show."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Kernel
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.parameters import BASES_PER_VARIANT

_MEASURE = Kernel("mapping/divergence", "measure_divergence")

#: Differences of reads that weigh as much as what is expected without them.
WEIGHT = 250

#: The most and the fewest bases a variant that are believed, whatever the reads show.
MOST_BASES, LEAST_BASES = 2_000, 20

#: An error that is sure, in the kernel's units.
ONE_ERROR = 1 << 24


def measure_divergence(batch: Batch, most: int, context: Context) -> NDArray[np.int64]:
    """What the first `most` reads show, in the order of the input: int64 [reads, 3], zeros where that is nothing.

    The columns are bases of good quality, differences among them, and errors that their qualities promise, in units of
    1 / ONE_ERROR.
    """
    backend, count = context.backend, min(batch.reads.count, most)
    tallies = backend.empty((count, 3), np.int64)
    batch.launch(_MEASURE, count, context, tallies=tallies)
    return backend.to_host(tallies)


def bases_per_variant(tallies: NDArray[Any]) -> int:
    """Bases with one difference of the sample: what differs more often than the qualities promise is the sample's."""
    bases, differences, errors = tallies.sum(axis=0, dtype=np.int64).tolist()
    real = max(differences - errors / ONE_ERROR, 0)
    believed = (bases + WEIGHT * BASES_PER_VARIANT) / (real + WEIGHT)
    return int(min(max(believed, LEAST_BASES), MOST_BASES))
