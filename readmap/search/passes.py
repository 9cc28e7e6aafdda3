"""Which reads a pass searches, and how densely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend
from readmap.search.batch import Batch
from readmap.search.parameters import Effort


@dataclass(frozen=True)
class Selection:
    """Reads that are searched alike.

    Attributes:
        slots: int32 [selected] on the device.
        lengths: int32 [selected] on the host, no less than the effort's shortest seed.
        stride: bases between seed positions.
        effort: of the pass.
    """

    slots: Array
    lengths: np.ndarray[Any, np.dtype[np.int32]]
    stride: int
    effort: Effort

    @property
    def count(self) -> int:
        """How many reads there are."""
        return len(self.lengths)


def select(effort: Effort, batch: Batch, backend: Backend) -> Iterator[Selection]:
    """The reads that a pass takes, by the stride of their length; slots are ordered by length."""
    slots = np.flatnonzero(backend.to_host(batch.placements.unsettled) & effort.takes).astype(np.int32)
    lengths = batch.queries.host_lengths[slots]
    begin = int(np.searchsorted(lengths, effort.shortest_seed))
    while begin < len(slots):
        stride = effort.stride_of(int(lengths[begin]))
        following = _next_length(int(lengths[begin]), stride, effort, int(lengths[-1]))
        end = begin + int(np.searchsorted(lengths[begin:], following))
        yield Selection(backend.to_device(slots[begin:end]), lengths[begin:end], stride, effort)
        begin = end


def _next_length(length: int, stride: int, effort: Effort, longest: int) -> int:
    """The smallest greater length of which the stride is another."""
    if effort.stride_of(longest) == stride:
        return longest + 1
    return next(n for n in range(length + 1, longest + 1) if effort.stride_of(n) != stride)
