"""Test the order of reads by length and the offsets of their words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readmap.backend import open_backend
from readmap.reads.length_order import sort_by_length

SHAPES = [(1, 0), (4, 1)]  # of patterns and of queries


@pytest.mark.parametrize("lanes", [None, 4, 32])
@pytest.mark.parametrize(("planes", "pads"), SHAPES)
@settings(derandomize=True, max_examples=60, deadline=None)
@given(lengths=st.lists(st.integers(0, 10_000) | st.just(150), min_size=1, max_size=200))
def test_slots(backends: str, planes: int, pads: int, lanes: int | None, lengths: list[int]) -> None:
    backend = open_backend(backends)
    backend.warp_width = lanes or backend.warp_width
    slots = sort_by_length(backend.to_device(np.array(lengths, np.int32)), planes, pads, backend)
    order = backend.to_host(slots.order)
    sorted_lengths = np.array(lengths)[order]
    assert order.tolist() == np.argsort(lengths, kind="stable").tolist()
    assert backend.to_host(slots.slot_of)[order].tolist() == list(range(len(lengths)))
    assert backend.to_host(slots.lengths).tolist() == sorted_lengths.tolist()
    blocks = [
        sorted_lengths[first : first + backend.warp_width] for first in range(0, len(lengths), backend.warp_width)
    ]
    sizes = [planes * (-(-int(block.max()) // 32) + pads) * backend.warp_width for block in blocks]
    assert backend.to_host(slots.tile_offsets).tolist() == [0, *np.cumsum(sizes)]
    assert slots.words == sum(sizes)
    assert slots.length_runs.max_length == max(lengths)
    for slot, length in enumerate(sorted_lengths.tolist()):
        assert slots.length_runs.length_of(slot) == length
        assert slots.length_runs.first_slot_of_length(length + 1) == int(np.searchsorted(sorted_lengths, length + 1))
