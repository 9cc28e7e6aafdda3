"""The index, the parameters and the sample model that all stages of a search share."""

from __future__ import annotations

from dataclasses import dataclass, field

from readmap.backend import Backend
from readmap.index.device import DeviceIndex
from readmap.mapping.device_counters import CapacityEstimates
from readmap.mapping.inserts import InsertSize
from readmap.mapping.parameters import DEFAULT_BASES_PER_DIFFERENCE, Pairing, Reporting, Scoring


@dataclass(frozen=True)
class Sample:
    """Properties of a sample, estimated from its first reads; the defaults hold for most samples.

    Attributes:
        bases_per_difference: bases in which one difference from the reference is expected.
        insert_sizes: insert-size distribution of each direction; empty for single reads, or if the pairs show none.
    """

    bases_per_difference: int = DEFAULT_BASES_PER_DIFFERENCE
    insert_sizes: tuple[InsertSize, ...] = ()


@dataclass(frozen=True)
class Context:
    """An index on the backend's device, the user's parameters, and the sample model.

    capacity_estimates: list sizes of earlier batches; None if the host reads all sizes back at once.
    """

    index: DeviceIndex
    backend: Backend
    scoring: Scoring = field(default_factory=Scoring)
    pairing: Pairing = field(default_factory=Pairing)
    reporting: Reporting = field(default_factory=Reporting)
    sample: Sample = field(default_factory=Sample)
    capacity_estimates: CapacityEstimates | None = None
