"""Duplicates are marked where records leave the runs that are held: each has the number of its fragment behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from readmap.backend import Array, Backend
from readmap.backend.compilation.declarations import constant

#: Of a fragment, as kernels/bam/marking.cuh has them.
DUPLICATE, OPTICAL = constant("bam/marking.cuh", "DUPLICATE"), constant("bam/marking.cuh", "OPTICAL")

#: Bytes of the number of a record's fragment, a tag, and those by which a record grows that is told its kind.
FRAGMENT_TAG_BYTES, TYPE_TAG_BYTES = constant("bam/marking.cuh", "FRAGMENT_TAG_BYTES"), constant("bam/marking.cuh", "TYPE_TAG_BYTES")

#: Fragments that can be numbered.
MAX_FRAGMENTS = 1 << 32


@dataclass(frozen=True)
class Marking:
    """struct Marking of kernels/bam/marking.cuh.

    Attributes:
        marks: uint8 [fragments], DUPLICATE and OPTICAL.
        tag_bytes: FRAGMENT_TAG_BYTES, or 0 where records have no number behind them, or are to keep it.
        is_removed: whether duplicates are left out. has_type: whether they get the tag DT.
        is_kept: whether nothing is marked, and the number stays, as the tag ZF.
    """

    marks: Array
    tag_bytes: int
    is_removed: bool = False
    has_type: bool = False
    is_kept: bool = False

    @property
    def max_growth(self) -> int:
        """Bytes by which a record is longer at most where it is written."""
        return 0 if self.is_kept else (TYPE_TAG_BYTES if self.has_type else 0) - self.tag_bytes


class Marker(Protocol):
    """Who knows which fragments are duplicates, once all have come."""

    def marking(self, backend: Backend) -> Marking:
        """What is marked, on a device."""


def no_marking(backend: Backend) -> Marking:
    """Records as they are held."""
    return Marking(backend.empty(0, np.uint8), 0)
