"""How duplicates are marked when records leave the sorted runs, in which the ID of its fragment follows each record."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from readmap.backend import Array, Backend
from readmap.backend.compilation.declarations import constant

#: Marks of a fragment.
DUPLICATE, OPTICAL = constant("bam/marking.cuh", "DUPLICATE"), constant("bam/marking.cuh", "OPTICAL")
#: Bytes of the tag with the fragment ID.
FRAGMENT_TAG_BYTES = constant("bam/marking.cuh", "FRAGMENT_TAG_BYTES")
#: Bytes of a DT tag.
TYPE_TAG_BYTES = constant("bam/marking.cuh", "TYPE_TAG_BYTES")
#: Fragment IDs are uint32.
MAX_FRAGMENTS = 1 << 32


@dataclass(frozen=True)
class Marking:
    """How duplicates are marked; struct Marking of kernels/bam/marking.cuh."""

    marks: Array  # uint8 [fragments], DUPLICATE and OPTICAL
    tag_bytes: int  # FRAGMENT_TAG_BYTES, or 0 if records have no fragment IDs
    is_removed: bool = False  # duplicates are dropped
    has_type: bool = False  # duplicates get a DT tag
    is_kept: bool = False  # no record is marked, and the fragment ID is kept as the tag ZF

    @property
    def max_growth(self) -> int:
        """Maximum difference between the output length and the stored length of a record."""
        return 0 if self.is_kept else (TYPE_TAG_BYTES if self.has_type else 0) - self.tag_bytes


class Marker(Protocol):
    """Determines which fragments are duplicates after all fragments have been added."""

    def marking(self, backend: Backend) -> Marking:
        """Return the marking, with its marks on the device of `backend`."""


def no_marking(backend: Backend) -> Marking:
    """Return the marking of records without fragment IDs, which stay unchanged."""
    return Marking(backend.empty(0, np.uint8), 0)
