"""Sorting on a device: pairs of a key and a value, by a radix sort of our own, the same on CPU and GPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant

_TAKE = Kernel("common/sort", "take_keys")
_COUNT = Kernel("common/sort", "count_digits", by_block=True)
_SCATTER = Kernel("common/sort", "scatter_by_digit", by_block=True)
_DIGIT_BITS, _DIGITS = constant("common/digits.cuh", "DIGIT_BITS"), constant("common/digits.cuh", "DIGITS")

#: Sections for each group of threads that works at once, and the pairs of the smallest one.
_SECTIONS, _LEAST_PAIRS = 16, 2048


def sort_pairs(
    keys: Array, values: Array, other_keys: Array, other_values: Array, bits: int, backend: Backend
) -> tuple[Array, Array]:
    """The keys, uint64, in order, and their values beside them; pairs of equal keys stay in the order they are in.

    values: uint32 or uint64. The others: of the same sizes and dtypes, for what is between; what is found is in these,
    or in the first two, and the rest is scratch. bits: all keys are below 2^bits.
    """
    size = len(keys)
    section_size = max(-(-size // (_SECTIONS * backend.groups)), _LEAST_PAIRS)
    sections = -(-size // section_size)
    counts = backend.empty(_DIGITS * sections, np.int64)
    shape = {"size": size, "sections": sections, "section_size": section_size}
    for shift in range(0, bits, _DIGIT_BITS):
        backend.launch(_COUNT, sections, keys=keys, counts=counts, shift=shift, **shape)
        ends = backend.prefix_sums(counts)
        backend.launch(
            _SCATTER,
            sections,
            keys=keys,
            values=values,
            ends=ends,
            sorted_keys=other_keys,
            sorted_values=other_values,
            shift=shift,
            **shape,
        )
        keys, values, other_keys, other_values = other_keys, other_values, keys, values
    return keys, values


def order_by(columns: Sequence[tuple[Array, int]], backend: Backend) -> Array:
    """The numbers of rows, uint32, in the order of their columns, of which the first decides first; equal rows as they
    stood.

    columns: uint64 [rows], and bits: all of it is below 2^bits.
    """
    size = len(columns[0][0])
    keys, other_keys = (backend.empty(size, np.uint64) for _ in range(2))
    order, other = backend.to_device(np.arange(size, dtype=np.uint32)), backend.empty(size, np.uint32)
    for column, bits in reversed(columns):
        backend.launch(_TAKE, size, given=column, order=order, keys=keys, size=size)
        _, found = sort_pairs(keys, order, other_keys, other, bits, backend)
        order, other = (order, other) if found is order else (other, order)
    return order
