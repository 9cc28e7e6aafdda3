"""Stable LSD radix sort of key-value pairs on the device, with the same result on CPU and GPU."""

from collections.abc import Sequence

import numpy as np

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant

_COUNT, _SCATTER = Kernel("common/radix_sort", "count_digits"), Kernel("common/radix_sort", "scatter_by_digit")
_GATHER = Kernel("common/radix_sort", "gather_keys")
_DIGIT_BITS, _DIGITS = constant("common/radix_digits.cuh", "DIGIT_BITS"), constant("common/radix_digits.cuh", "DIGITS")

#: Sections per concurrent warp, and the minimum number of pairs in a section.
_SECTIONS_PER_WARP, _MIN_SECTION = 16, 2048


def sort_pairs(
    keys: Array, values: Array, other_keys: Array, other_values: Array, bits: int, backend: Backend
) -> tuple[Array, Array]:
    """Sort keys, uint64, with their values, uint32 or uint64; return the sorted (keys, values).

    Pairs of equal keys keep their order. other_keys, other_values: a second buffer of the same size and dtypes. The
    result is in either buffer; the other buffer is overwritten. bits: all keys are below 2^bits.
    """
    size = len(keys)
    section_size = max(-(-size // (_SECTIONS_PER_WARP * backend.concurrent_warps)), _MIN_SECTION)
    sections = -(-size // section_size)
    counts = backend.empty(_DIGITS * sections, np.int64)
    shape = {"size": size, "sections": sections, "section_size": section_size}
    for shift in range(0, bits, _DIGIT_BITS):
        backend.launch(_COUNT, sections, keys=keys, counts=counts, shift=shift, **shape)
        ends = backend.inclusive_sum(counts)
        buffers = {"keys": keys, "values": values, "sorted_keys": other_keys, "sorted_values": other_values}
        backend.launch(_SCATTER, sections, ends=ends, shift=shift, **buffers, **shape)
        keys, values, other_keys, other_values = other_keys, other_values, keys, values
    return keys, values


def argsort_columns(columns: Sequence[tuple[Array, int]], backend: Backend) -> Array:
    """Return the row indices, uint32, that sort the rows by their columns, the first column being the primary key.

    Equal rows keep their order. columns: (uint64 [rows], bits), where all values are below 2^bits.
    """
    size = len(columns[0][0])
    keys, other_keys = (backend.empty(size, np.uint64) for _ in range(2))
    order, other = backend.to_device(np.arange(size, dtype=np.uint32)), backend.empty(size, np.uint32)
    for column, bits in reversed(columns):
        backend.launch(_GATHER, size, values=column, order=order, keys=keys, size=size)
        _, found = sort_pairs(keys, order, other_keys, other, bits, backend)
        order, other = (order, other) if found is order else (other, order)
    return order
