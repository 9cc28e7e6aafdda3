"""Which of some bytes are marked, listed on their device."""

from __future__ import annotations

import numpy as np

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant

_COUNT = Kernel("common/marks", "count_marked", grouped=True)
_LIST = Kernel("common/marks", "list_marked", grouped=True)
_BLOCK = constant("common/marks.cu", "BLOCK")


def list_marked(marks: Array, mask: int, backend: Backend, number: int = 0) -> Array:
    """The numbers, int32 in order, of the uint8 marks that have a bit of the mask; number: that of the first one."""
    size = len(marks)
    blocks = -(-size // _BLOCK)
    counts = backend.empty(blocks, np.int64)
    backend.launch(_COUNT, blocks, marks=marks, counts=counts, size=size, mask=mask)
    ends, total = backend.ends(counts)
    marked = backend.empty(total, np.int32)
    backend.launch(_LIST, blocks, marks=marks, ends=ends, marked=marked, size=size, mask=mask, number=number)
    return marked
