"""What all stages of a search share, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field

from readmap.backend import Backend
from readmap.index.device import DeviceIndex
from readmap.mapping.inserts import InsertSize
from readmap.mapping.device_counters import CapacityEstimates
from readmap.mapping.parameters import DEFAULT_BASES_PER_DIFFERENCE, Pairing, Reporting, Scoring


@dataclass(frozen=True)
class Sample:
    """What is expected of the reads: what the first of them showed, and before that what holds for most samples.

    Attributes:
        bases_per_difference: bases in which one difference from the reference is expected.
        insert_sizes: of the library, one a direction; none where there are no pairs, or they did not show any.
    """

    bases_per_difference: int = DEFAULT_BASES_PER_DIFFERENCE
    insert_sizes: tuple[InsertSize, ...] = ()


@dataclass(frozen=True)
class Context:
    """The index on the backend's device, what a user set, and what is known of the sample.

    rates: what batches needed; None where the host hears of all sizes at once.
    """

    index: DeviceIndex
    backend: Backend
    scoring: Scoring = field(default_factory=Scoring)
    pairing: Pairing = field(default_factory=Pairing)
    reporting: Reporting = field(default_factory=Reporting)
    sample: Sample = field(default_factory=Sample)
    capacity_estimates: CapacityEstimates | None = None
