"""Estimate the sample's divergence from the reference, in bases per difference, from its first reads."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Kernel
from readmap.mapping.batch import Batch, Context
from readmap.mapping.parameters import DEFAULT_BASES_PER_DIFFERENCE

_MEASURE = Kernel("mapping/divergence", "measure_divergence")
#: Weight of the prior, in real differences: with this number of them, data and prior count alike.
WEIGHT = 250
#: Bounds of the estimate, in bases per difference.
MAX_BASES_PER_DIFFERENCE, MIN_BASES_PER_DIFFERENCE = 2_000, 20
#: Fixed-point unit of the kernel's error counts: one certain sequencing error.
ONE_ERROR = 1 << 24


def measure_divergence(batch: Batch, max_reads: int, context: Context) -> NDArray[np.int64]:
    """Return int64 [reads, 3] for the first `max_reads` reads in input order, zeros if a read has no reliable bases.

    Columns: reliable bases, differences among them, and expected sequencing errors * ONE_ERROR.
    """
    backend, count = context.backend, min(batch.reads.count, max_reads)
    tallies = backend.empty((count, 3), np.int64)
    batch.launch(_MEASURE, count, context, tallies=tallies)
    return backend.to_host(tallies)


def estimate_bases_per_difference(tallies: NDArray[Any]) -> int:
    """Estimate the sample's bases per difference from tallies of measure_divergence, int64 [reads, 3], and a prior."""
    bases, differences, errors = tallies.sum(axis=0, dtype=np.int64).tolist()
    real = max(differences - errors / ONE_ERROR, 0)
    believed = (bases + WEIGHT * DEFAULT_BASES_PER_DIFFERENCE) / (real + WEIGHT)
    return int(min(max(believed, MIN_BASES_PER_DIFFERENCE), MAX_BASES_PER_DIFFERENCE))
